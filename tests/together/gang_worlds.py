"""A scheduler with Coscheduling, and PodGroups with their pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.framework import Plugin
from podium.kube import Pod
from podium.kube.custom_object import POD_GROUP_LABEL
from podium_plugins.coscheduling import Coscheduling
from podium_plugins.coscheduling.pod_group import RESOURCE
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_pod

CREATED = "1970-01-12T13:46:40Z"
"""The time at which the clock of a `World` stands."""


def make_group(
    name: str = "pg", minimum: int | None = 3, *, annotations: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "default",
        "creationTimestamp": CREATED,
        "annotations": dict(annotations or {}),
    }
    return {"metadata": metadata, "spec": spec if minimum is None else {"minMember": minimum, **spec}}


def member(name: str, group: str = "pg", **options: Any) -> Pod:
    return make_pod(name, labels={POD_GROUP_LABEL: group, **options.pop("labels", {})}, **options)


def members(number: int, group: str = "pg", cpu: int = 1, **options: Any) -> list[Pod]:
    return [member(f"{group}-{i}", group, requests={"cpu": cpu}, **options) for i in range(number)]


class GangWorld(World):
    """All default plugins, and Coscheduling in place of PrioritySort."""

    def __init__(self, *plugins: type[Plugin], args: Mapping[str, Any] | None = None, **options: Any) -> None:
        given = {"Coscheduling": args} if args else {}
        super().__init__(*plugins, default=True, sorter=Coscheduling, args=given, **options)

    def set_group(self, group: Mapping[str, Any], *, gone: bool = False) -> None:
        key = f"default/{group['metadata']['name']}"
        self.intake.set_custom(RESOURCE, key, None if gone else dict(group))

    @property
    def plugin(self) -> Coscheduling:
        plugin = self.scheduler.profiles["default-scheduler"].plugins["Coscheduling"]
        assert isinstance(plugin, Coscheduling)
        return plugin

    def run(self, most: int = 10_000) -> None:
        """Try pods until none is ready."""
        for _ in range(most):
            if self.scheduler.schedule_one() is None:
                return
        raise AssertionError(f"still busy after {most} attempts")

    def messages(self) -> dict[str, str]:
        """The last message of each pod, by name."""
        return {failed.key.partition("/")[2]: failed.message for failed in self.failures}

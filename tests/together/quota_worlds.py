"""A scheduler with CapacityScheduling, and ElasticQuotas with their pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.kube import Pod
from podium_plugins.capacity_scheduling import CapacityScheduling
from podium_plugins.capacity_scheduling.quota import RESOURCE
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod

Bound = Mapping[str, Any] | None


def make_quota(namespace: str, least: Bound = None, most: Bound = None, *, name: str = "", created: str = "") -> Any:
    metadata = {"name": name or namespace, "namespace": namespace}
    if created:
        metadata["creationTimestamp"] = created
    bounds = {"min": least, "max": most}
    return {"metadata": metadata, "spec": {key: dict(bound) for key, bound in bounds.items() if bound is not None}}


def quota_pod(name: str, namespace: str, cpu: Any = 2, *, node: str = "", **options: Any) -> Pod:
    requests = options.pop("requests", {"cpu": cpu})
    return make_pod(name, namespace=namespace, node=node, requests=requests, **options)


class QuotaWorld(World):
    """Resources of nodes and quotas are all that counts; a node of 8 cpu unless others are given.

    Every node has 8 gpus, too.
    """

    def __init__(self, *, nodes: Mapping[str, int] | None = None, **options: Any) -> None:
        sizes = {"n1": 8} if nodes is None else nodes
        super().__init__(
            "NodeUnschedulable",
            "NodeResourcesFit",
            "NodeResourcesBalancedAllocation",
            "CapacityScheduling",
            nodes=[make_node(name, cpu=cpu, allocatable={"x.io/gpu": 8}) for name, cpu in sizes.items()],
            **options,
        )

    def set_quota(self, namespace: str, least: Bound = None, most: Bound = None, **options: Any) -> None:
        quota = make_quota(namespace, least, most, **options)
        self.intake.set_custom(RESOURCE, f"{namespace}/{quota['metadata']['name']}", quota)

    def drop_quota(self, namespace: str, name: str = "") -> None:
        self.intake.set_custom(RESOURCE, f"{namespace}/{name or namespace}", None)

    @property
    def plugin(self) -> CapacityScheduling:
        plugin = self.scheduler.profiles["default-scheduler"].plugins["CapacityScheduling"]
        assert isinstance(plugin, CapacityScheduling)
        return plugin

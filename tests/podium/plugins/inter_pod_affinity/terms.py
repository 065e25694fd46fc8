"""Short ways to write affinity terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podium.kube import Pod
from tools.kit.builders import make_pod

ZONE = "topology.kubernetes.io/zone"
Data = dict[str, Any]


def term(key: str = ZONE, *, app: str | None = "db", selector: Data | None = None, **scope: Any) -> Data:
    """A term about pods of an app (None: about no pod), or about those a selector chooses."""
    if selector is None and app is not None:
        selector = {"matchLabels": {"app": app}}
    return {"topologyKey": key, **({} if selector is None else {"labelSelector": selector}), **scope}


def weighted(weight: int, what: Data) -> Data:
    return {"weight": weight, "podAffinityTerm": what}


def affinity(
    required: Sequence[Data] = (),
    anti: Sequence[Data] = (),
    preferred: Sequence[Data] = (),
    disliked: Sequence[Data] = (),
) -> Data:
    """A pod's spec with these terms."""
    rule, wish = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
    return {
        "affinity": {
            "podAffinity": {rule: list(required), wish: list(preferred)},
            "podAntiAffinity": {rule: list(anti), wish: list(disliked)},
        }
    }


def app_pod(name: str, app: str, node: str = "", **more: Any) -> Pod:
    return make_pod(name, labels={"app": app}, node=node, **more)

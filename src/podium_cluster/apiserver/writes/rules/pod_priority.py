"""Sets a pod's priority from its class (Priority admission), and from nowhere else.

A pod that names no class gets the default class, of several the lowest; without any it is 0 and may preempt. A pod may
repeat the number and the preemption policy of its class but not say others.
"""

from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import forbidden
from podium_cluster.apiserver.kinds import POD, built_in
from podium_cluster.apiserver.writes.context import WriteContext

PRIORITY_CLASS: Final = built_in("scheduling.k8s.io/v1", "PriorityClass")


class GivenPriority(NamedTuple):
    """What a priority class gives; without a name, what there is without one."""

    name: str
    value: int
    policy: str
    is_default: bool


_NO_CLASS: Final = GivenPriority("", 0, "PreemptLowerPriority", True)


def set_priority(pod: JsonObject, context: WriteContext) -> None:
    spec = pod.setdefault("spec", {})
    class_name = spec.get("priorityClassName")
    found = class_named(class_name, context) if class_name else default_class(context)
    if found is None:
        raise _refused(pod, f"no PriorityClass with name {class_name} was found")
    if found.name:
        spec["priorityClassName"] = found.name
    given = spec.get("priority")
    if given is not None and given != found.value:
        why = f"the integer value of priority ({given}) must not be provided in pod spec; "
        raise _refused(
            pod, f"{why}priority admission controller computed {found.value} from the given PriorityClass name"
        )
    spec["priority"] = found.value
    if found.policy:
        given = spec.get("preemptionPolicy")
        if given is not None and given != found.policy:
            why = f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
            raise _refused(
                pod, f"{why}priority admission controller computed {found.policy} from the given PriorityClass name"
            )
        spec["preemptionPolicy"] = found.policy


def class_named(name: str, context: WriteContext) -> GivenPriority | None:
    stored = context.store.get(PRIORITY_CLASS, "", name)
    return None if stored is None else _read(stored.raw)


def default_class(context: WriteContext) -> GivenPriority:
    """What counts for pods that name no class."""
    defaults = [found for stored in context.store.items(PRIORITY_CLASS) if (found := _read(stored.raw)).is_default]
    return min(defaults, key=lambda found: found.value) if defaults else _NO_CLASS


def _refused(pod: JsonObject, why: str) -> Exception:
    return forbidden(POD, pod["metadata"].get("name", ""), why)


@lru_cache(maxsize=256)
def _read(raw: bytes) -> GivenPriority:
    found: dict[str, Any] = msgspec.json.decode(raw)
    return GivenPriority(
        found["metadata"]["name"],
        found.get("value", 0),
        found.get("preemptionPolicy", "PreemptLowerPriority"),
        bool(found.get("globalDefault")),
    )

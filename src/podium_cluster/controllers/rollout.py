"""Computes how many pods each ReplicaSet of a Deployment may have, and the Deployment's status.

Pure: ReplicaSets and Deployments in, numbers and statuses out. A rolling update never has more than replicas + maxSurge
pods and tries never to have fewer than replicas − maxUnavailable available ones. A Deployment that is scaled in the
middle of a rollout spreads the difference over its ReplicaSets by their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.kube.json_object import JsonObject
from podium.workloads.budgets import scaled
from podium_cluster.controllers import conditions

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX = "deployment.kubernetes.io/max-replicas"
HASH_LABEL = "pod-template-hash"
NO_DEADLINE = 2**31 - 1
_HISTORY_CHARACTERS = 2000
_NOT_COPIED = {
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MAX,
}


def replicas(obj: JsonObject) -> int:
    value = obj["spec"].get("replicas")
    return 1 if value is None else int(value)


def counted(obj: JsonObject, field: str) -> int:
    return int((obj.get("status") or {}).get(field) or 0)


def total(sets: Iterable[JsonObject]) -> int:
    return sum(replicas(each) for each in sets)


def available(sets: Iterable[JsonObject]) -> int:
    return sum(counted(each, "availableReplicas") for each in sets)


def is_rolling(deployment: JsonObject) -> bool:
    return bool(deployment["spec"]["strategy"]["type"] == "RollingUpdate")


def fenceposts(deployment: JsonObject) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers; not both may be zero, or nothing would ever move."""
    if not is_rolling(deployment):
        return 0, 0
    rolling, wanted = deployment["spec"]["strategy"]["rollingUpdate"], replicas(deployment)
    surge = scaled(rolling.get("maxSurge", 0), wanted, round_up=True)
    unavailable = scaled(rolling.get("maxUnavailable", 0), wanted, round_up=False)
    return surge, 1 if surge == 0 and unavailable == 0 else unavailable


def max_surge(deployment: JsonObject) -> int:
    return fenceposts(deployment)[0]


def max_unavailable(deployment: JsonObject) -> int:
    return min(fenceposts(deployment)[1], replicas(deployment))


def size_of_new(deployment: JsonObject, sets: Sequence[JsonObject], new: JsonObject) -> int:
    """How many pods the new ReplicaSet may have now."""
    wanted, has = replicas(deployment), replicas(new)
    if not is_rolling(deployment):
        return wanted
    allowed = wanted + max_surge(deployment) - total(sets)
    return has if allowed <= 0 else has + min(allowed, wanted - has)


def sizes_of_old(deployment: JsonObject, old: Sequence[JsonObject], new: JsonObject) -> dict[str, int]:
    """The old ReplicaSets that shrink now, by name, with their new sizes: what is unhealthy first, then the oldest."""
    at_least = replicas(deployment) - max_unavailable(deployment)
    sizes = {each["metadata"]["name"]: replicas(each) for each in old}
    before = dict(sizes)
    oldest_first = sorted(old, key=by_age)
    room = sum(sizes.values()) + replicas(new) - at_least - (replicas(new) - counted(new, "availableReplicas"))
    if room <= 0 or not sum(sizes.values()):
        return {}
    cleaned = 0
    for each in oldest_first:
        name = each["metadata"]["name"]
        unhealthy = sizes[name] - counted(each, "availableReplicas")
        if sizes[name] and unhealthy and cleaned < room:
            gone = min(room - cleaned, unhealthy)
            sizes[name] -= gone
            cleaned += gone
    spare = available([*old, new]) - at_least
    for each in oldest_first:
        name = each["metadata"]["name"]
        gone = min(sizes[name], spare)
        if gone > 0:
            sizes[name] -= gone
            spare -= gone
    return {name: size for name, size in sizes.items() if size != before[name]}


def sizes_when_scaled(
    deployment: JsonObject, old: Sequence[JsonObject], new: JsonObject | None
) -> dict[str, int] | None:
    """The size of each ReplicaSet after the Deployment was scaled or while it is paused; None: all stay as they are."""
    wanted = replicas(deployment)
    every = [*old, *([new] if new is not None else [])]
    active = [each for each in every if replicas(each) > 0]
    if len(active) <= 1:
        if not every:
            return None
        only = active[0] if active else new or max(old, key=by_age)
        return {only["metadata"]["name"]: wanted} if replicas(only) != wanted else None
    if new is not None and is_saturated(deployment, new):
        return {each["metadata"]["name"]: 0 for each in old if replicas(each) > 0}
    if not is_rolling(deployment):
        return None
    allowed = wanted + max_surge(deployment) if wanted > 0 else 0
    to_add = allowed - total(active)
    # The largest first; of equals the newer first when growing, the older first when shrinking.
    aged = sorted(active, key=by_age, reverse=to_add > 0)
    by_size = sorted(aged, key=lambda each: -replicas(each)) if to_add else active
    sizes, added = {}, 0
    for each in by_size:
        share = _share(each, deployment, to_add, added)
        sizes[each["metadata"]["name"]] = replicas(each) + share
        added += share
    if to_add:
        largest = by_size[0]["metadata"]["name"]
        sizes[largest] = max(0, sizes[largest] + to_add - added)
    return sizes


def _share(each: JsonObject, deployment: JsonObject, to_add: int, added: int) -> int:
    if to_add in (0, added):
        return 0
    fraction = _fraction(each, deployment)
    return min(fraction, to_add - added) if to_add > 0 else max(fraction, to_add - added)


def _fraction(each: JsonObject, deployment: JsonObject) -> int:
    wanted, has = replicas(deployment), replicas(each)
    if wanted == 0:
        return -has
    before = annotated_number(each, MAX) or counted(deployment, "replicas")
    if before == 0:
        return 0
    size = has * (wanted + max_surge(deployment)) / before
    return int(size + 0.5) - has


def is_saturated(deployment: JsonObject, new: JsonObject) -> bool:
    wanted = replicas(deployment)
    return replicas(new) == annotated_number(new, DESIRED) == counted(new, "availableReplicas") == wanted


def annotated_number(obj: JsonObject, annotation: str) -> int | None:
    text = (obj["metadata"].get("annotations") or {}).get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) < 2**31 else None


def revision(obj: JsonObject) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def annotations_of_new(deployment: JsonObject, new: JsonObject, number: int) -> dict[str, str]:
    """The annotations that the new ReplicaSet must have: the Deployment's, the revision, and those it had before."""
    annotations = dict(new["metadata"].get("annotations") or {})
    of_deployment = deployment["metadata"].get("annotations") or {}
    annotations |= {key: value for key, value in of_deployment.items() if key not in _NOT_COPIED}
    had = annotations.get(REVISION)
    if int(had or 0) < number:
        annotations[REVISION] = str(number)
        if had is not None:
            history = [each for each in annotations.get(REVISION_HISTORY, "").split(",") if each] + [had]
            while len(",".join(history)) > _HISTORY_CHARACTERS:
                del history[0]
            annotations[REVISION_HISTORY] = ",".join(history)
    return annotations


def size_annotations(deployment: JsonObject) -> dict[str, str]:
    wanted = replicas(deployment)
    return {DESIRED: str(wanted), MAX: str(wanted + max_surge(deployment))}


def status_of(deployment: JsonObject, sets: Sequence[JsonObject], new: JsonObject | None, time: str) -> JsonObject:
    """The status for these ReplicaSets; conditions are carried over and Available is set again."""
    ready = sum(counted(each, "readyReplicas") for each in sets)
    up = available(sets)
    old = deployment.get("status") or {}
    counts = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": sum(counted(each, "replicas") for each in sets),
        "updatedReplicas": counted(new, "replicas") if new is not None else 0,
        "readyReplicas": ready,
        "availableReplicas": up,
        "unavailableReplicas": max(0, total(sets) - up),
    }
    status: JsonObject = {field: count for field, count in counts.items() if count}
    terminating = [(each.get("status") or {}).get("terminatingReplicas") for each in sets]
    if all(count is not None for count in terminating):
        status["terminatingReplicas"] = sum(terminating)
    if old.get("collisionCount") is not None:
        status["collisionCount"] = old["collisionCount"]
    if old.get("conditions"):
        status["conditions"] = list(old["conditions"])
    enough = up >= replicas(deployment) - max_unavailable(deployment)
    put(
        status,
        "Available",
        "True" if enough else "False",
        "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        "Deployment has minimum availability." if enough else "Deployment does not have minimum availability.",
        time,
    )
    return status


def put(status: JsonObject, kind: str, value: str, reason: str, message: str, time: str) -> None:
    new = {"type": kind, "status": value, "lastUpdateTime": time, "lastTransitionTime": time}
    conditions.put(status, new | {"reason": reason, "message": message}, keep_transition=True)


def has_deadline(deployment: JsonObject) -> bool:
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    return deadline is not None and deadline != NO_DEADLINE


def is_complete(deployment: JsonObject, status: JsonObject) -> bool:
    wanted = replicas(deployment)
    fields = ("updatedReplicas", "replicas", "availableReplicas")
    up_to_date = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return up_to_date and all(status.get(field, 0) == wanted for field in fields)


def is_progressing(deployment: JsonObject, status: JsonObject) -> bool:
    """Whether more is new, ready or available, or less is old, than when the status was last written."""
    before = deployment.get("status") or {}

    def old_pods(of: JsonObject) -> int:
        return int(of.get("replicas", 0)) - int(of.get("updatedReplicas", 0))

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_pods(status) < old_pods(before) or any(status.get(f, 0) > before.get(f, 0) for f in grown)


def by_age(each: JsonObject) -> tuple[str, str]:
    return each["metadata"].get("creationTimestamp") or "", each["metadata"]["name"]

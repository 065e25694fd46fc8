"""Admits pods by their RuntimeClass: its overhead and its node selector become the pod's own."""

from typing import Final

from kubecel.quantity import QuantityError, parse
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError, forbidden
from podium_cluster.apiserver.kinds import POD, built_in
from podium_cluster.apiserver.writes.context import WriteContext

RUNTIME_CLASS: Final = built_in("node.k8s.io/v1", "RuntimeClass")


def set_runtime(pod: JsonObject, context: WriteContext) -> None:
    spec = pod.setdefault("spec", {})
    name = spec.get("runtimeClassName")
    if not name:
        if spec.get("overhead"):
            raise _refused(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
        return
    stored = context.store.get(RUNTIME_CLASS, "", name)
    if stored is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    runtime = stored.decode()
    fixed = (runtime.get("overhead") or {}).get("podFixed")
    if fixed:
        if spec.get("overhead") and not _same(spec["overhead"], fixed):
            raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = fixed
    elif spec.get("overhead"):
        raise _refused(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    _restrict(pod, spec, runtime.get("scheduling") or {})


def _restrict(pod: JsonObject, spec: JsonObject, scheduling: JsonObject) -> None:
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            why = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] ="
            raise _refused(pod, f"{why} {selector[key]}")
        selector = {**selector, key: value}
    if selector:
        spec["nodeSelector"] = selector
    tolerations = spec.get("tolerations") or []
    more = [each for each in scheduling.get("tolerations") or () if each not in tolerations]
    if more:
        spec["tolerations"] = [*tolerations, *more]


def _same(left: JsonObject, right: JsonObject) -> bool:
    try:
        return {name: parse(amount) for name, amount in left.items()} == {
            name: parse(amount) for name, amount in right.items()
        }
    except QuantityError:
        return False


def _refused(pod: JsonObject, why: str) -> StatusError:
    return forbidden(POD, pod["metadata"].get("name", ""), why)

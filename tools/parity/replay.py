"""Makes a cluster plan out of a case's listed objects, so that a case can be decided again, whole or in part.

What the server added (uids, versions, times) is taken off. Pods that wait with a nomination come back behind a gate:
for others they are the same nominated pods, and nothing can make the scheduler try them in between.
"""

from copy import deepcopy

from tools.parity.case import Case
from tools.parity.dice import NAMESPACES, Obj
from tools.parity.gen_cluster import ClusterPlan, PendingPlan
from tools.parity.gen_pods import PodPlan

HELD = {"name": "example.test/held"}
KEPT_METADATA = ("name", "namespace", "labels", "annotations", "finalizers", "ownerReferences")


def plan_of(case: Case, objects: list[Obj]) -> ClusterPlan:
    """The case with only these of its objects; every namespace stays, for pods have to live somewhere."""
    pods = [each for each in objects if each["kind"] == "Pod"]
    claims = [each for each in objects if each["kind"] == "PersistentVolumeClaim"]
    owned = {id(claim): claim for claim in claims if _owner(claim)}
    bound = [each for each in pods if each["spec"].get("nodeName")]
    nominated = [each for each in pods if not each["spec"].get("nodeName") and _nomination(each)]
    others = [
        each
        for each in objects
        if each["kind"] not in ("Pod", "Namespace")
        and id(each) not in owned
        and each["metadata"]["name"] != "kubernetes"
    ]
    pending = PendingPlan(_pod_plan(case.pod, claims), keep=False, start_time=None)
    return ClusterPlan(
        index=0,
        theme=case.theme,
        namespace_labels=_namespace_labels(objects),
        objects=[_clean(each) for each in others],
        bound=[_pod_plan(each, claims) for each in bound],
        terminating_pods=[
            (each["metadata"]["namespace"], each["metadata"]["name"])
            for each in bound
            if "deletionTimestamp" in each["metadata"]
        ],
        terminating_claims=[each for each in claims if "deletionTimestamp" in each["metadata"]],
        reserved=[_held(each) for each in nominated],
        config=case.config,
        pending=[pending],
    )


def _clean(obj: Obj) -> Obj:
    copy = deepcopy(obj)
    copy["metadata"] = {key: value for key, value in copy["metadata"].items() if key in KEPT_METADATA}
    if copy["kind"] == "PersistentVolume" and "claimRef" in copy["spec"]:
        for field in ("uid", "resourceVersion"):
            copy["spec"]["claimRef"].pop(field, None)
    if copy["kind"] == "Pod":
        _unmerge_label_keys(copy["spec"])
    return copy


def _unmerge_label_keys(spec: Obj) -> None:
    """The server merges matchLabelKeys into the selector, and refuses a selector that has them already."""
    terms = list(spec.get("topologySpreadConstraints", []))
    for kind in ("podAffinity", "podAntiAffinity"):
        block = spec.get("affinity", {}).get(kind, {})
        terms += block.get("requiredDuringSchedulingIgnoredDuringExecution", [])
        weighted = block.get("preferredDuringSchedulingIgnoredDuringExecution", [])
        terms += [each["podAffinityTerm"] for each in weighted]
    for term in terms:
        merged = {*term.get("matchLabelKeys", ()), *term.get("mismatchLabelKeys", ())}
        expressions = term.get("labelSelector", {}).get("matchExpressions", [])
        if merged and expressions:
            term["labelSelector"]["matchExpressions"] = [each for each in expressions if each["key"] not in merged]


def _pod_plan(pod: Obj, claims: list[Obj]) -> PodPlan:
    clean = _clean(pod)
    if not clean["spec"].get("nodeName"):
        clean["status"] = {"nominatedNodeName": _nomination(pod)} if _nomination(pod) else {}
    owned = [
        _clean(claim)
        for claim in claims
        if _owner(claim) == pod["metadata"]["name"] and claim["metadata"]["namespace"] == pod["metadata"]["namespace"]
    ]
    return PodPlan(clean, owned)


def _held(pod: Obj) -> PodPlan:
    plan = _pod_plan(pod, [])
    plan.pod["spec"]["schedulingGates"] = [HELD]
    return plan


def _nomination(pod: Obj) -> str:
    return str(pod.get("status", {}).get("nominatedNodeName", ""))


def _owner(claim: Obj) -> str:
    for owner in claim["metadata"].get("ownerReferences", []):
        if owner["kind"] == "Pod":
            return str(owner["name"])
    return ""


def _namespace_labels(objects: list[Obj]) -> dict[str, Obj]:
    labels: dict[str, Obj] = {name: {"env": None, "team": None} for name in NAMESPACES}
    for each in objects:
        if each["kind"] == "Namespace":
            found = each["metadata"].get("labels", {})
            labels[each["metadata"]["name"]] |= {key: found[key] for key in ("env", "team") if key in found}
    return labels

"""Reads what a question is about: the pods of `-f`, and of the Deployments, StatefulSets, Jobs, … in it.

A workload stands for its pods. Of one that the cluster has already, pods of the same template stay where they are, and
those that are missing are asked about; of another template, all are, and the old ones are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from podium.engine.explain import with_uid
from podium.kube import Pod, ReplicaSet, StatefulSet
from podium.kube.admission import as_admitted, with_claims_made
from podium.kube.decode import KINDS, decode_documents
from podium.kube.kinds_around_pods import WORKLOAD_KINDS, Workload
from podium.whatif.applying import belongs_to
from podium.whatif.patterns import MOST_PODS, QuestionError, check_number
from podium.whatif.pod_names import FreePodNames
from podium.whatif.sandbox import Sandbox
from podium.workloads import daemon_sets
from podium.workloads.templates import TemplateError, desired, make_pods, named, template_of

READ: Final = {**KINDS, **WORKLOAD_KINDS}


@dataclass
class Given:
    """What the files of `-f` hold."""

    pods: list[Pod] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.pods or self.workloads)

    def templates(self) -> int:
        """How many different pods are asked about."""
        return len(self.pods) + sum(each.kind != "PodTemplate" for each in self.workloads)


@dataclass
class WantedPods:
    """The pods to judge, those that are there already, and what is set beside them."""

    pods: list[Pod] = field(default_factory=list)
    standing: list[Pod] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)


def read_given(texts: Iterable[tuple[str, str]]) -> Given:
    """What is in these texts, each with the name of its file; raises DecodeError and QuestionError."""
    given = Given()
    for text, source in texts:
        decoded = decode_documents(text, source, READ)
        found: list[Any] = list(decoded.objects)
        for each in found:
            if isinstance(each, Pod):
                given.pods.append(each)
            elif isinstance(each, Workload):
                given.workloads.append(each)
            else:
                given.others.append(each)
        if not found:
            held = ", ".join(sorted(decoded.skipped)) or "nothing"
            raise QuestionError(
                f"{source}: no pod in it, only {held}; give a Pod, or what makes pods, such as a Deployment"
            )
    buffers = {each.spec.pod_template_ref.name for each in given.workloads if each.spec.pod_template_ref is not None}
    _check_names(given)
    lone = [each for each in given.workloads if each.kind == "PodTemplate" and each.name not in buffers]
    given.workloads = [each for each in given.workloads if each.kind != "PodTemplate"] + lone
    return given


def _check_names(given: Given) -> None:
    """Raises QuestionError for pods without a name, and for two of one name."""
    seen = set()
    for item in (*given.pods, *given.workloads):
        name = item.metadata.name or item.metadata.generate_name
        kind = item.kind if isinstance(item, Workload) else "Pod"
        if not name:
            raise QuestionError(f"a {kind} has no name; write metadata.name")
        if item.metadata.name and (kind, item.key) in seen:
            raise QuestionError(f"{kind} {item.key} is given twice; give each its own name, or one and --replicas N")
        seen.add((kind, item.key))


def template_pod(given: Given, known: Sequence[Any], origin: str) -> tuple[Pod, list[Any]]:
    """The one pod that a template stands for, and the objects that count beside it."""
    if given.pods:
        pod, others = _with_base_name(given.pods[0]), given.others
    else:
        made = make_pods(given.workloads[0], 1, given.workloads)
        pod, others = made.pods[0], [*given.others, *made.others]
    completed = as_admitted([pod, *others], known, origin)
    assert isinstance(completed[0], Pod)
    return with_uid(_unbound(completed[0])), completed[1:]


def wanted(sandbox: Sandbox, given: Given, replicas: int | None, origin: str, others: Sequence[Pod] = ()) -> WantedPods:
    """The pods that are asked about, given what the cluster has; old ones of another template are taken away.

    Their names differ from those of `others`, which are placed with them.
    """
    check_number(replicas or 0, MOST_PODS, f"--replicas {replicas}")
    found = WantedPods(others=list(given.others))
    for pod in given.pods:
        known = next((each for each in _everyone(sandbox) if pod.name and each.key == pod.key), None)
        if known is not None:
            sandbox.remove_pod(known)
    names = FreePodNames(sandbox, others)
    for pod in given.pods:
        one = pod.name and (replicas is None or replicas == 1)
        found.pods += [pod] if one else [_numbered(pod, names) for _ in range(replicas or 1)]
    for workload in given.workloads:
        _add_workload(sandbox, workload, given, replicas, found, others)
    if not found.pods and not found.standing:
        wants = ", ".join(map(named, given.workloads))
        raise QuestionError(f"{wants}: it asks for no pods; say how many with --replicas")
    beside = [*known_objects(sandbox), *found.others]
    found.others = as_admitted(found.others, beside, origin)
    completed = with_claims_made(as_admitted(found.pods, beside, origin), beside)
    completed = as_admitted(completed, beside, origin)
    found.pods = [with_uid(_unbound(each)) for each in completed if isinstance(each, Pod)]
    found.others += [each for each in completed if not isinstance(each, Pod)]
    return found


def _unbound(pod: Pod) -> Pod:
    from podium.engine.explain import as_unbound

    return as_unbound(pod)


def _add_workload(
    sandbox: Sandbox,
    workload: Workload,
    given: Given,
    replicas: int | None,
    found: WantedPods,
    others: Sequence[Pod],
) -> None:
    existing = [
        pod
        for pod in _everyone(sandbox)
        if pod.namespace == workload.namespace and belongs_to(pod, workload.kind, workload.name) and not pod.terminating
    ]
    if workload.kind == "DaemonSet":
        _add_daemon_set(sandbox, workload, existing, found)
        return
    count = desired(workload) if replicas is None else replicas
    if count < 0:
        raise QuestionError(f"{named(workload)}: {count} pods cannot be; write a number that is not negative")
    check_number(count, MOST_PODS, f"{named(workload)}: {count} pods")
    template = template_of(workload, given.workloads)
    same = [pod for pod in existing if _equal_to(pod, template.spec)]
    for pod in existing:
        if pod not in same:
            sandbox.remove_pod(pod)
    standing = [pod for pod in same if pod.node_name][:count]
    for pod in same:
        if not pod.node_name:
            sandbox.remove_pod(pod)
    taken = {pod.name for pod in standing}
    made = make_pods(workload, count + len(taken), given.workloads)
    if same and workload.kind in ("Deployment", "ReplicaSet", "StatefulSet"):  # spreading goes by what owns them
        made.others[:] = [each for each in made.others if not isinstance(each, ReplicaSet | StatefulSet)]
        owners, labels = same[0].metadata.owner_references, same[0].labels
        pods = [replace(pod, metadata=replace(pod.metadata, owner_references=owners)) for pod in made.pods]
        if workload.kind == "Deployment":
            pods = [replace(pod, metadata=replace(pod.metadata, labels=labels)) for pod in pods]
        made = made._replace(pods=pods)
    wanted_pods = [pod for pod in made.pods if pod.name not in taken][: count - len(standing)]
    if workload.kind != "StatefulSet":  # its controller makes up the names
        names = FreePodNames(sandbox, [*others, *found.pods])
        wanted_pods = [_renamed(pod, names) if names.is_taken(pod) else pod for pod in wanted_pods]
    found.pods += wanted_pods
    found.standing += standing
    found.others += made.others


def _add_daemon_set(sandbox: Sandbox, workload: Workload, existing: Sequence[Pod], found: WantedPods) -> None:
    """One pod for every node that takes it; those of the set that run are replaced."""
    for pod in existing:
        sandbox.remove_pod(pod)
    made = make_pods(workload, 1)
    pod = replace(made.pods[0], spec=daemon_sets.tolerant(made.pods[0].spec))
    for node in sandbox.nodes():
        if daemon_sets.runs_on(pod, node):
            metadata = replace(pod.metadata, name=f"{workload.name}-{node.name}")
            found.pods.append(replace(pod, metadata=metadata, spec=daemon_sets.pinned(pod.spec, node.name)))
    if not found.pods:
        raise TemplateError(f"{named(workload)}: no node takes its pods; look at its tolerations and its node selector")


def _equal_to(pod: Pod, spec: Any) -> bool:
    """Whether scheduling sees no difference between a pod and a template, but for what admission adds."""
    mine = pod.spec
    return (
        [(each.resources.requests, each.ports) for each in mine.containers]
        == [({**each.resources.limits, **each.resources.requests}, each.ports) for each in spec.containers]
        and (mine.node_selector, mine.affinity, mine.topology_spread_constraints)
        == (spec.node_selector, spec.affinity, spec.topology_spread_constraints)
        and set(spec.tolerations) <= set(mine.tolerations)
    )


def _with_base_name(pod: Pod) -> Pod:
    """With the name that further pods are numbered by, where the manifest has only `generateName`."""
    name = pod.name or pod.metadata.generate_name.rstrip("-")
    return replace(pod, metadata=replace(pod.metadata, name=name))


def _numbered(pod: Pod, names: FreePodNames) -> Pod:
    name = names.take(pod.namespace, _with_base_name(pod).name)
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=""))


def _renamed(pod: Pod, names: FreePodNames) -> Pod:
    """A pod of a controller whose name another pod has."""
    return replace(pod, metadata=replace(pod.metadata, name=names.take(pod.namespace, f"{pod.name}-x")))


def _everyone(sandbox: Sandbox) -> list[Pod]:
    return [*(placed.pod for placed in sandbox.cluster.pods.values()), *sandbox.cluster.objects.pending_pods]


def known_objects(sandbox: Sandbox) -> list[Any]:
    """What pods are completed by: their classes, and the templates of their claims with the claims that are there."""
    objects = sandbox.cluster.objects
    claims = (*objects.resource_claims, *objects.claims)
    return [*objects.priority_classes, *objects.storage_classes, *claims, *sandbox.templates]

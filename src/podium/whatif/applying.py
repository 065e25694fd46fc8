"""Carries out changes in a sandbox: nodes come and go, pods are deleted, fields are set.

What is added gets names that are free. A clone of a node keeps its labels but the host name, and its taints but those
that the node controller sets; the pods that DaemonSets would run there come with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubecel.quantity import QuantityError, parse
from podium.kube import Node, ObjectMeta, Pod, ResourceSlice, Taint
from podium.kube.check import problems
from podium.kube.custom_object import CUSTOM_KINDS
from podium.kube.decode import KINDS
from podium.kube.node import NodeSpec, NodeStatus
from podium.whatif import changes as change
from podium.whatif.patterns import (
    MOST_NODES,
    MOST_PODS,
    QuestionError,
    check_number,
    nodes_named,
    pods_selected,
    some,
)
from podium.whatif.pod_names import FreePodNames
from podium.whatif.sandbox import Sandbox
from podium.workloads import daemon_sets
from podium.workloads.deletion_order import in_deletion_order

HOSTNAME: Final = "kubernetes.io/hostname"
CONTROLLED: Final = "node.kubernetes.io/"
"""What the keys of the node controller's own taints begin with."""

NodeMaker = Callable[[change.AddNodes, str], Node]
"""A node of a type of the catalog, or of a file, by the change and its name."""


class AppliedChanges:
    """What changes came to: the names of nodes that came, and the nodes to be drained."""

    def __init__(self) -> None:
        self.added: dict[int, list[str]] = {}
        """By the number of the change."""
        self.drained: list[str] = []
        self.unplaced: list[Pod] = []
        """Pods of workloads that were scaled up: to be placed."""


def apply(sandbox: Sandbox, changes: Sequence[change.Change], make: NodeMaker | None = None) -> AppliedChanges:
    """Change the sandbox; raises QuestionError where a change cannot be made."""
    applied = AppliedChanges()
    for number, each in enumerate(changes):
        match each:
            case change.AddNodes():
                applied.added[number] = _add_nodes(sandbox, each, make)
            case change.RemoveNodes():
                for node in nodes_named(each.nodes, sandbox.nodes(), "--remove-nodes"):
                    sandbox.remove_node(node.name)
            case change.Drain():
                found = nodes_named(each.nodes, sandbox.nodes(), "--drain")
                applied.drained += [node.name for node in found if node.name not in applied.drained]
                for node in found:
                    sandbox.set(cordoned(node))
            case change.DeletePods():
                everyone = [placed.pod for placed in sandbox.cluster.pods.values()]
                everyone += sandbox.cluster.objects.pending_pods
                for pod in pods_selected(each.selector, everyone, "--delete-pods"):
                    sandbox.remove_pod(pod)
            case change.Scale():
                _scale(sandbox, each, applied)
            case change.SetField():
                _set_field(sandbox, each)
            case change.AddObjects():
                for item in each.items:
                    sandbox.set(_object(item))
            case _:
                _change_nodes(sandbox, each)
    return applied


# Nodes


def _change_nodes(sandbox: Sandbox, each: Any) -> None:
    option = f"--{type(each).__struct_config__.tag}"
    for node in nodes_named(each.nodes, sandbox.nodes(), option):
        sandbox.set(_changed(node, each))


def _changed(node: Node, each: Any) -> Node:
    match each:
        case change.Cordon():
            return cordoned(node)
        case change.Uncordon():
            return replace(node, spec=replace(node.spec, unschedulable=False))
        case change.AddTaint():
            others = [taint for taint in node.taints if (taint.key, taint.effect) != (each.key, each.effect)]
            added = Taint(key=each.key, value=each.value, effect=each.effect)
            return replace(node, spec=replace(node.spec, taints=(*others, added)))
        case change.RemoveTaint():
            others = [taint for taint in node.taints if taint.key != each.key or each.effect not in ("", taint.effect)]
            return replace(node, spec=replace(node.spec, taints=tuple(others)))
        case change.SetLabel():
            return _labelled(node, {**node.labels, each.key: each.value})
        case change.RemoveLabel():
            return _labelled(node, {key: value for key, value in node.labels.items() if key != each.key})
        case change.SetAllocatable():
            amounts = {**node.status.allocatable, each.resource: _amount(each)}
            return replace(node, status=replace(node.status, allocatable=amounts))
    raise AssertionError(each)


def cordoned(node: Node) -> Node:
    """The node as `kubectl cordon` leaves it."""
    return replace(node, spec=replace(node.spec, unschedulable=True))


def _labelled(node: Node, labels: dict[str, str]) -> Node:
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _amount(each: change.SetAllocatable) -> Any:
    try:
        amount = parse(each.amount)
    except QuantityError as error:
        raise QuestionError(f"--allocatable {each.resource}: {error}") from None
    if amount < 0:
        raise QuestionError(f"--allocatable {each.resource}={each.amount}: an amount cannot be negative")
    return each.amount


def _add_nodes(sandbox: Sandbox, each: change.AddNodes, make: NodeMaker | None) -> list[str]:
    check_number(each.count, MOST_NODES, f"--add-nodes {each.count}={each.like or each.type or each.file}")
    names = []
    of_each = daemon_sets.one_of_each(placed.pod for placed in sandbox.cluster.pods.values())
    for _ in range(each.count):
        if each.like:
            (original, *_more) = nodes_named(each.like, sandbox.nodes(), "--add-nodes like:")
            name = free_name(sandbox, original.name)
            node = clone(original, name)
            _clone_devices(sandbox, original.name, name)
        elif make is None:
            what = each.type or each.file
            raise QuestionError(f"--add-nodes {each.count}={what}: give the catalog that has this type with --catalog")
        else:
            node = make(each, free_name(sandbox, each.type or "node"))
        add_node(sandbox, node, of_each)
        names.append(node.name)
    return names


def add_node(sandbox: Sandbox, node: Node, of_each: Iterable[Pod]) -> None:
    """Let a node come, with the pods that DaemonSets run there."""
    sandbox.set(node)
    for pod in daemon_sets.pods_for(node, of_each):
        sandbox.set(pod)


def clone(node: Node, name: str) -> Node:
    """A new node like one there is, without its images."""
    labels = {**node.labels, HOSTNAME: name}
    taints = tuple(taint for taint in node.taints if not taint.key.startswith(CONTROLLED))
    status = NodeStatus(
        allocatable=node.status.allocatable,
        capacity=node.status.capacity,
        declared_features=node.status.declared_features,
        conditions=node.status.conditions,
    )
    metadata = ObjectMeta(name=name, uid=name, labels=labels, annotations=node.annotations)
    return Node(metadata=metadata, spec=NodeSpec(taints=taints), status=status)


def _clone_devices(sandbox: Sandbox, original: str, name: str) -> None:
    """The new node's ResourceSlices: those of the original, in pools of its own."""
    slices = [each for each in sandbox.cluster.objects.resource_slices if each.spec.node_name == original]
    for each in slices:
        spec = each.spec
        pool = replace(spec.pool, name=spec.pool.name.replace(original, name))
        if pool.name == spec.pool.name:
            pool = replace(pool, name=f"{pool.name}-{name}")
        made = replace(
            each,
            metadata=ObjectMeta(name=f"{each.name}-{name}", uid=f"{each.name}-{name}"),
            spec=replace(spec, node_name=name, pool=pool),
        )
        assert isinstance(made, ResourceSlice)
        sandbox.set(made)


def free_name(sandbox: Sandbox, like: str) -> str:
    """A name for a new node: `TYPE-0`, or the next that is free."""
    number = 0
    while f"{like}-{number}" in sandbox.cluster.row_of:
        number += 1
    return f"{like}-{number}"


# Pods and workloads


def _scale(sandbox: Sandbox, each: change.Scale, applied: AppliedChanges) -> None:
    """Let the surplus pods go, in the order of the ReplicaSet controller; or note the pods that come."""
    check_number(each.replicas, MOST_PODS, f"--scale {each.workload}={each.replicas}")
    if each.workload.count("/") != 2 or each.replicas < 0:
        what = f"--scale {each.workload}={each.replicas}"
        raise QuestionError(f"{what}: write NAMESPACE/KIND/NAME=N, such as shop/Deployment/web=10")
    namespace, kind, name = each.workload.split("/")
    placed = [entry.pod for entry in sandbox.cluster.pods.values()]
    everyone = [*placed, *sandbox.cluster.objects.pending_pods, *applied.unplaced]
    pods = [pod for pod in everyone if pod.namespace == namespace and belongs_to(pod, kind, name)]
    if not pods:
        raise QuestionError(f"--scale {each.workload}: it has no pods here; give the object with -f, and --replicas")
    surplus = len(pods) - each.replicas
    if surplus > 0:
        if kind.lower().startswith("statefulset") or kind == "sts":
            ordered = sorted(pods, key=lambda pod: -_ordinal(pod.name))
        else:
            ordered = in_deletion_order(pods, pods, sandbox.clock.now())
        for pod in ordered[:surplus]:
            sandbox.remove_pod(pod)
        gone = {pod.uid for pod in ordered[:surplus]}
        applied.unplaced = [pod for pod in applied.unplaced if pod.uid not in gone]
        return
    names = FreePodNames(sandbox, applied.unplaced)
    applied.unplaced += [copy_of(pods[0], names.take(namespace, name)) for _ in range(-surplus)]


def _ordinal(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def copy_of(pod: Pod, name: str) -> Pod:
    """Another pod of the same workload, which waits for a node."""
    from podium.engine.explain import as_unbound
    from podium.kube import PodStatus

    metadata = replace(
        pod.metadata,
        name=name,
        uid=f"{pod.namespace}/{name}",
        resource_version="",
        creation_timestamp=None,
        deletion_timestamp=None,
    )
    return replace(as_unbound(pod), metadata=metadata, status=PodStatus(phase="Pending"))


def belongs_to(pod: Pod, kind: str, name: str) -> bool:
    """Whether a workload owns the pod; a Deployment's name is that of the ReplicaSet without its last part."""
    owner = pod.metadata.controller
    if owner is None:
        return False
    kind = kind.lower().removesuffix("s").partition(".")[0]
    if kind in ("deployment", "deploy"):
        return owner.kind == "ReplicaSet" and owner.name.rpartition("-")[0] == name
    if kind in ("cronjob", "cj"):
        return owner.kind == "Job" and owner.name.rpartition("-")[0] == name
    full = {
        "rs": "replicaset",
        "sts": "statefulset",
        "d": "daemonset",
        "ds": "daemonset",
        "rc": "replicationcontroller",
    }
    return owner.kind.lower() == full.get(kind, kind) and owner.name == name


# Fields


def _object(item: Mapping[str, Any]) -> Any:
    kind = KINDS.get((str(item.get("apiVersion")), str(item.get("kind"))))
    if kind is None:
        raise QuestionError(f"objects: {item.get('apiVersion')} {item.get('kind')} is no kind that scheduling reads")
    try:
        return _usable(msgspec.convert(item, kind), f"objects: {item.get('kind')}")
    except msgspec.ValidationError as error:
        raise QuestionError(f"objects: {item.get('kind')}: {error}") from None


def _usable(item: Any, what: str) -> Any:
    """The object; raises QuestionError for an amount or a selector that cannot be read."""
    for problem in problems(item):
        raise QuestionError(f"{what}: {problem.path.removeprefix('$.')}: {problem.message}")
    return item


def _set_field(sandbox: Sandbox, each: change.SetField) -> None:
    kind, _, name = each.object.partition("/")
    found = _find(sandbox, kind, name)
    value = each.value
    if isinstance(value, str):
        value = _plain(value)
    if isinstance(found, tuple):
        resource, key, data = found
        store = sandbox.cluster.objects.custom_store(resource)
        sandbox.set_in(store, key, _with(data, each.path.split("."), value, each))
        return
    data = _with(msgspec.to_builtins(found), each.path.split("."), value, each)
    what = f"--set {each.object}.{each.path}={each.value}"
    try:
        changed = msgspec.convert(data, type(found))
    except msgspec.ValidationError as error:
        raise QuestionError(f"{what}: {error}") from None
    sandbox.set(_usable(changed, what))


def _plain(text: str) -> Any:
    """What an option's text means as JSON; text where it means nothing else. Amounts stay text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _find(sandbox: Sandbox, kind: str, name: str) -> Any:
    """The object, or (resource, key, data) of one that only plugins read."""
    objects = sandbox.cluster.objects
    word = kind.partition(".")[0].lower()
    if word in ("node", "nodes", "no"):
        return nodes_named(name, sandbox.nodes(), f"--set {kind}/")[0]
    if word in ("pod", "pods", "po"):
        for pod in (*(each.pod for each in sandbox.cluster.pods.values()), *objects.pending_pods):
            if pod.key == name:
                return pod
        raise QuestionError(f"--set {kind}/{name}: there is no such pod")
    for type_, store in ((type_, objects.store_of(type_)) for type_ in dict.fromkeys(KINDS.values())):
        if store is not None and word in (type_.__name__.lower(), *plurals(type_.__name__)):
            if (found := store.get(name)) is None:
                raise QuestionError(
                    f"--set {kind}/{name}: there is no such {type_.__name__}; there are {some(list(store))}"
                )
            return found
    for (_version, custom), resource in CUSTOM_KINDS.items():
        if word in (custom.lower(), *plurals(custom)):
            data = objects.custom_store(resource).get(name)
            if data is None:
                known = ", ".join(_keys(objects.custom_store(resource))) or "none"
                raise QuestionError(f"--set {kind}/{name}: there is no such {custom}; there are {known}")
            return resource, name, data
    raise QuestionError(f"--set {kind}/{name}: {kind} is no kind that can be changed here")


def _keys(store: Iterable[Any]) -> list[str]:
    return [f"{each['metadata'].get('namespace', 'default')}/{each['metadata']['name']}" for each in store]


SHORT: Final = {
    "PriorityClass": "pc",
    "PodDisruptionBudget": "pdb",
    "PersistentVolumeClaim": "pvc",
    "PersistentVolume": "pv",
}
"""The short names that kubectl has."""


def plurals(kind: str) -> tuple[str, ...]:
    """How a kind's plural may be written, and its short name.

    >>> plurals("PriorityClass"), plurals("PodDisruptionBudget")
    (('priorityclasses', 'pc'), ('poddisruptionbudgets', 'pdb'))
    """
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    if kind.endswith("y"):
        plural = kind.lower()[:-1] + "ies"
    return (plural, SHORT[kind]) if kind in SHORT else (plural,)


def _with(data: Any, path: Sequence[str], value: Any, each: change.SetField) -> Any:
    """The data with one value set; maps on the way are made where they are missing."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(data, list):
        if not head.isdecimal() or int(head) >= len(data):
            raise QuestionError(f"--set {each.object}.{each.path}: {head} is no place in a list of {len(data)}")
        return [*data[: int(head)], _with(data[int(head)], rest, value, each), *data[int(head) + 1 :]]
    if data is not None and not isinstance(data, dict):
        raise QuestionError(f"--set {each.object}.{each.path}: {head} is below a value that is no map")
    known = data or {}
    for length in range(len(path), 1, -1):  # keys may have dots: labels, extended resources
        joined = ".".join(path[:length])
        if joined in known:
            return {**known, joined: _with(known[joined], path[length:], value, each)}
    return {**known, head: _with(known.get(head), rest, value, each)}

"""Finds the pod that is meant: a name, NAMESPACE/POD, TYPE/NAME as kubectl has it, or the only pod in a file.

A workload stands for its pods. They get equal answers, so one is judged: the first that waits for a node.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from podium.cli.errors import InputError

if TYPE_CHECKING:
    from podium.kube import KubeObject, Pod

SHOWN = 5
POD: Final = "Pod"
_SHORT: Final = {
    "po": POD,
    "pod": POD,
    "deploy": "Deployment",
    "rs": "ReplicaSet",
    "sts": "StatefulSet",
    "ds": "DaemonSet",
    "rc": "ReplicationController",
    "job": "Job",
    "cj": "CronJob",
    "deployment": "Deployment",
    "replicaset": "ReplicaSet",
    "statefulset": "StatefulSet",
    "daemonset": "DaemonSet",
    "replicationcontroller": "ReplicationController",
    "cronjob": "CronJob",
}
_STEM: Final = {"Deployment": re.compile(r"-[a-z0-9]+$"), "CronJob": re.compile(r"-[0-9]+$")}
"""What a Deployment adds to its own name for its ReplicaSets, and a CronJob for its Jobs."""
_OWNED: Final = {"Deployment": "ReplicaSet", "CronJob": "Job"}


class NamedPod(NamedTuple):
    """What was named. Without a kind it is a pod, or else a workload of any kind."""

    namespace: str
    name: str
    kind: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def target_of(name: str, namespace: str, *, given: bool = False) -> NamedPod:
    """What was typed; `namespace` counts for a name without one, and `given` says that -n named it.

    >>> target_of("web", "shop"), target_of("shop/web", "default"), target_of("deploy/web", "shop", given=True)
    (NamedPod(namespace='shop', name='web', kind=''), NamedPod(namespace='shop', name='web', kind=''), \
NamedPod(namespace='shop', name='web', kind='Deployment'))
    """
    first, slash, rest = name.partition("/")
    if not slash:
        return NamedPod(namespace, name)
    kind = _kind(first)
    if kind is not None:
        return NamedPod(namespace, rest, kind)
    if given and first != namespace:
        raise InputError(f"{name} is not in the namespace {namespace}: give one of them")
    return NamedPod(first, rest)


def _kind(word: str) -> str | None:
    """
    >>> _kind("deployments.apps"), _kind("statefulsets"), _kind("shop")
    ('Deployment', 'StatefulSet', None)
    """
    word = word.partition(".")[0].lower()
    return _SHORT.get(word) or _SHORT.get(word.removesuffix("s"))


def find_pod(
    target: NamedPod | None,
    cluster: "Sequence[KubeObject]",
    more: "Sequence[KubeObject]" = (),
    origin: str = "the files",
    *,
    namespace: str = "",
) -> "tuple[Pod, str]":
    """The pod to judge, and what to say where it stands for others; what was given with -f (`more`) goes before the
    cluster's version of it.

    `origin` is what the cluster's objects come from, for messages: the files, or the cluster itself. Without a target
    a `namespace` restricts which pods are named.
    """
    from podium.kube import Pod

    given = {each.key: each for each in more if isinstance(each, Pod)}
    known = {each.key: each for each in cluster if isinstance(each, Pod)} | given
    if target is None:
        return _only_one(given, known, namespace), ""
    if target.kind in ("", POD) and target.key in known:
        return known[target.key], ""
    members = _members(target, known.values(), [*cluster, *more])
    if members:
        return _one_of(target, members)
    what = f"{(target.kind or POD).lower()} {target.key}"
    if target.kind not in ("", POD):
        raise InputError(f"{what} has no pods in {origin}")
    others = _members(target._replace(kind=""), known.values(), [*cluster, *more])
    if others:
        raise InputError(f"{what} is not in {origin}; {target.key} has {len(others)} pods: leave out the type")
    raise InputError(f"{what} is not in {origin}{_advice(target, known, origin)}")


def _members(target: NamedPod, pods: "Iterable[Pod]", objects: "Iterable[KubeObject]") -> "list[Pod]":
    """The pods of a workload, by their controllers' names."""
    from podium.kube import ReplicaSet

    if target.kind == POD:
        return []
    deployments = {
        each.key: each.metadata.controller.name
        for each in objects
        if isinstance(each, ReplicaSet) and each.metadata.controller is not None
    }

    def belongs(pod: "Pod") -> bool:
        owner = pod.metadata.controller
        if owner is None or pod.namespace != target.namespace:
            return False
        if owner.name == target.name and target.kind in ("", owner.kind):
            return True
        for kind, owned in _OWNED.items():
            if owner.kind == owned and target.kind in ("", kind):
                above = deployments.get(f"{pod.namespace}/{owner.name}") if owned == "ReplicaSet" else None
                if (above or _STEM[kind].sub("", owner.name)) == target.name:
                    return True
        return False

    return [pod for pod in pods if belongs(pod) and not pod.finished]


def _one_of(target: NamedPod, members: "list[Pod]") -> "tuple[Pod, str]":
    waiting = [pod for pod in members if not pod.node_name]
    chosen = (waiting or members)[0]
    if len(members) == 1:
        return chosen, ""
    standing = f"{len(waiting)} of them without a node" if waiting else "all with a node"
    return chosen, f"{target.key} has {len(members)} pods, {standing}: {chosen.key} is judged"


def _only_one(given: "dict[str, Pod]", known: "dict[str, Pod]", namespace: str) -> "Pod":
    if len(given) == 1:
        return next(iter(given.values()))
    if given:
        raise InputError(f"say which pod: the file given with -f holds {_some(list(given))}")
    pending = [
        key for key, pod in known.items() if not pod.node_name and not pod.finished and namespace in ("", pod.namespace)
    ]
    if not pending:
        raise InputError(f"say which pod: {'NAME' if namespace else 'NAMESPACE/POD'}; none waits for a node")
    wait = "waits" if len(pending) == 1 else "wait"
    raise InputError(f"say which pod: {_some(pending)} {wait} for a node, and -A is for all that wait")


def _advice(target: NamedPod, known: "dict[str, Pod]", origin: str) -> str:
    """Names that may have been meant: close ones of the namespace, and the very name in others."""
    here = {pod.metadata.name: key for key, pod in known.items() if pod.namespace == target.namespace}
    elsewhere = [key for key, pod in known.items() if pod.metadata.name == target.name]
    close = elsewhere or [here[name] for name in difflib.get_close_matches(target.name, here, n=1)]
    if close:
        return f"; did you mean {_some(close)}?"
    it = "it has" if origin == "the cluster" else "they hold"
    if not known:
        way = "give one that does not exist yet with -f" if it == "it has" else "add them with --from or -f"
        return f"; {it} no pods: {way}"
    if here:
        return f"; {it} {_some(list(here.values()))} in that namespace"
    namespaces = sorted({pod.namespace for pod in known.values()})
    return f"; {it} no pods in the namespace {target.namespace}, but in {_some(namespaces)}"


def _some(keys: list[str]) -> str:
    """The first few keys, and how many more there are."""
    shown = ", ".join(keys[:SHOWN])
    return f"{shown} and {len(keys) - SHOWN} more" if len(keys) > SHOWN else shown

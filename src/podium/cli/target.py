"""Finds the pod that is meant: the one named on the command line, or the only one in the file given with -f."""

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium.cli.errors import InputError

if TYPE_CHECKING:
    from podium.kube import KubeObject, Pod

SHOWN = 5


def pod_key(name: str | None, namespace: str = "default") -> str | None:
    """The namespace and name of what was typed; `namespace` is that of a name without one."""
    return name if name is None or "/" in name else f"{namespace}/{name}"


def check_namespace(name: str | None, namespace: str | None) -> None:
    """A namespace is given once, or twice the same."""
    if name is not None and namespace is not None and "/" in name and name.partition("/")[0] != namespace:
        raise InputError(f"{name} is not in the namespace {namespace}: give one of them")


def find_pod(
    name: str | None, cluster: "Sequence[KubeObject]", more: "Sequence[KubeObject]", origin: str = "the files"
) -> "Pod":
    """The pod to judge; what was given with -f (`more`) goes before the cluster's version of it.

    `origin` is what the cluster's objects come from, for messages: the files, or the cluster itself.
    """
    from podium.kube import Pod

    given = {each.key: each for each in more if isinstance(each, Pod)}
    known = {each.key: each for each in cluster if isinstance(each, Pod)} | given
    key = pod_key(name)
    if key is None:
        return _only_one(given, known)
    if key in known:
        return known[key]
    raise InputError(f"pod {key} is not in {origin}{_advice(key, list(known), origin)}")


def _only_one(given: "dict[str, Pod]", known: "dict[str, Pod]") -> "Pod":
    if len(given) == 1:
        return next(iter(given.values()))
    if given:
        raise InputError(f"say which pod: the file given with -f holds {_some(list(given))}")
    pending = [key for key, pod in known.items() if not pod.node_name and not pod.finished]
    raise InputError(f"say which pod: {_some(pending) + ' wait for a node' if pending else 'NAMESPACE/POD'}")


def _advice(key: str, known: list[str], origin: str) -> str:
    by_name: dict[str, list[str]] = {}
    for other in known:
        by_name.setdefault(other.partition("/")[2], []).append(other)
    close = difflib.get_close_matches(key.partition("/")[2], by_name, n=1)
    if close:
        return f"; did you mean {_some(by_name[close[0]])}?"
    if origin == "the cluster":
        return f"; it has {_some(known)}" if known else "; it has no pods: give one that does not exist yet with -f"
    return f"; they hold {_some(known)}" if known else "; they hold no pods: add them with --from or -f"


def _some(keys: list[str]) -> str:
    """The first few keys, and how many more there are."""
    shown = ", ".join(keys[:SHOWN])
    return f"{shown} and {len(keys) - SHOWN} more" if len(keys) > SHOWN else shown

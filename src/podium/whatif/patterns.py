"""Finds what a pattern of a question names: nodes by name with `*` and `?`, or by `-l SELECTOR`; pods by selector."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final, TypeVar

from podium.errors import UserError
from podium.kube import Node, Pod, SelectorError
from podium.kube.meta import ClusterObject
from podium.kube.selector import Selector, parse_selector

T = TypeVar("T", bound=ClusterObject)

SHOWN: Final = 5
MOST_NODES: Final = 100_000
MOST_PODS: Final = 1_000_000
_BY_LABELS: Final = re.compile(r"-l[\s=]*(.*)", re.DOTALL)


class QuestionError(UserError, ValueError):
    """A question that cannot be asked of this cluster: one sentence says why, and what to write."""


def check_number(number: int, most: int, what: str) -> None:
    """Raises QuestionError for a number that is larger than any cluster."""
    if number > most:
        raise QuestionError(f"{what}: more than this command counts; ask for at most {most}")


def nodes_named(pattern: str, nodes: Sequence[Node], option: str) -> list[Node]:
    """The nodes that a pattern names; raises QuestionError where it names none.

    >>> [node.name for node in nodes_named("a?,b1", [_node("a1"), _node("b1"), _node("b2")], "--drain")]
    ['a1', 'b1']
    """
    by_labels = _BY_LABELS.fullmatch(pattern.strip())
    if by_labels is not None:
        selector = selector_of(by_labels[1], option)
        found = [node for node in nodes if selector.matches(node.labels)]
        if not found:
            raise QuestionError(f"{option} {pattern}: no node has these labels; there are {some(nodes)}")
        return found
    wanted = [each.strip() for each in pattern.split(",") if each.strip()]
    if not wanted:
        raise QuestionError(f"{option}: name a node, such as {some(nodes)}")
    chosen: dict[str, Node] = {}
    for each in wanted:
        hits = [node for node in nodes if fnmatchcase(node.name, each)]
        if not hits:
            raise QuestionError(f"{option} {each}: no node of that name; there are {some(nodes)}")
        chosen.update((node.name, node) for node in hits)
    return list(chosen.values())


def pods_selected(text: str, pods: Iterable[Pod], option: str) -> list[Pod]:
    """The pods of a selector, which may begin with a namespace: `shop/app=web`, `-n shop app=web` or `app=web`."""
    namespace, selector = namespace_and_selector(text, option)
    pods = list(pods)
    found = [pod for pod in pods if namespace in ("", pod.namespace) and selector.matches(pod.labels)]
    if not found:
        where = f" in the namespace {namespace}" if namespace else ""
        raise QuestionError(f"{option} {text}: no pod{where} has these labels")
    return found


def namespace_and_selector(text: str, option: str) -> tuple[str, Selector]:
    """
    >>> namespace_and_selector("shop/app=web", "--delete-pods")[0], namespace_and_selector("app=web", "")[0]
    ('shop', '')
    """
    text = text.strip().removeprefix("-l").strip()
    head, slash, rest = text.partition("/")
    if slash and re.fullmatch(r"[a-z0-9-]+", head):
        return head, selector_of(rest, option)
    return "", selector_of(text, option)


def selector_of(text: str, option: str) -> Selector:
    if not text.strip():
        raise QuestionError(f"{option}: write a selector, such as app=web")
    try:
        return parse_selector(text)
    except SelectorError as error:
        raise QuestionError(f"{option} {text}: {error}") from None


def some(objects: Sequence[T]) -> str:
    """The first names, and how many more there are."""
    names = [each.name for each in objects]
    if not names:
        return "none"
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


def _node(name: str) -> Node:
    from podium.kube import ObjectMeta

    return Node(metadata=ObjectMeta(name=name))

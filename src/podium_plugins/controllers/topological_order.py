"""Sorts workloads so that each comes before those it depends on, by the algorithms that AppGroups name.

A graph is {workload: its dependencies, in their order}, with the workloads in theirs.

    KahnSort    takes a workload that nothing left depends on, the one found last first
    TarjanSort  goes down from each workload, and places it in the last free position when all below it are placed
    Reverse…    the same list from its end
    Alternate…  first, last, second, second-last and so on

Differs from the original: where several workloads could begin, the order in which they are written decides, not chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

Graph = Mapping[str, Sequence[str]]

SHOWN: Final = 8
"""The most workloads of a circle that are named."""


class CycleError(ValueError):
    """Workloads that depend on each other in a circle: no order has each before those it depends on."""


def kahn(graph: Graph) -> list[str]:
    """
    >>> kahn({"p1": ["p2", "p3"], "p2": ["p4"], "p3": ["p4"], "p4": []})
    ['p1', 'p3', 'p2', 'p4']
    """
    waiting_for = dict.fromkeys(graph, 0)
    for dependencies in graph.values():
        for each in dependencies:
            waiting_for[each] += 1
    free = [name for name in reversed(list(graph)) if not waiting_for[name]]
    order = []
    while free:
        name = free.pop()
        order.append(name)
        for each in graph[name]:
            waiting_for[each] -= 1
            if not waiting_for[each]:
                free.append(each)
    if len(order) < len(graph):
        raise CycleError(_circle(graph))
    return order


def tarjan(graph: Graph) -> list[str]:
    """
    >>> tarjan({"p1": ["p2", "p3"], "p2": ["p4"], "p3": ["p4"], "p4": []})
    ['p1', 'p3', 'p2', 'p4']
    """
    placed: dict[str, None] = {}
    for start in graph:
        path: dict[str, None] = {}
        steps = [(start, iter(graph[start]))] if start not in placed else []
        path[start] = None
        while steps:
            name, dependencies = steps[-1]
            below = next((each for each in dependencies if each not in placed), None)
            if below is None:
                steps.pop()
                path.pop(name)
                placed[name] = None
            elif below in path:
                raise CycleError(_circle(graph))
            else:
                path[below] = None
                steps.append((below, iter(graph[below])))
    return list(reversed(placed))


def alternate(order: Sequence[str]) -> list[str]:
    """
    >>> alternate(["a", "b", "c", "d", "e"])
    ['a', 'e', 'b', 'd', 'c']
    """
    left, right = list(order), list(reversed(order))
    return [(right if number % 2 else left)[number // 2] for number in range(len(order))]


def _reversed(order: Sequence[str]) -> list[str]:
    return list(reversed(order))


ALGORITHMS: Final[Mapping[str, tuple[Callable[[Graph], list[str]], Callable[[Sequence[str]], list[str]]]]] = {
    "KahnSort": (kahn, list),
    "TarjanSort": (tarjan, list),
    "ReverseKahn": (kahn, _reversed),
    "ReverseTarjan": (tarjan, _reversed),
    "AlternateKahn": (kahn, alternate),
    "AlternateTarjan": (tarjan, alternate),
}
"""How to sort, and what to do with the list."""


def sort(graph: Graph, algorithm: str) -> list[str]:
    """The workloads in the order of the algorithm; KahnSort's for one that is unknown. Raises CycleError."""
    order, arrange = ALGORITHMS.get(algorithm, ALGORITHMS["KahnSort"])
    return arrange(order(graph))


def _circle(graph: Graph) -> str:
    """One circle of the graph, in words; of a long one, its ends."""
    above: dict[str, list[str]] = {name: [] for name in graph}
    for name, dependencies in graph.items():
        for each in dependencies:
            above[each].append(name)
    waiting_for = {name: len(dependencies) for name, dependencies in graph.items()}
    ends = [name for name, count in waiting_for.items() if not count]
    while ends:  # what is on no circle, and leads to none
        name = ends.pop()
        del waiting_for[name]
        for each in above[name]:
            waiting_for[each] -= 1
            if not waiting_for[each]:
                ends.append(each)
    name = next(iter(waiting_for))
    path: dict[str, None] = {}
    while name not in path:
        path[name] = None
        name = next(each for each in graph[name] if each in waiting_for)
    circle = [*list(path)[list(path).index(name) :], name]
    if len(circle) > SHOWN:
        circle = [*circle[: SHOWN - 2], f"… {len(circle) - SHOWN + 1} more", name]
    return " → ".join(circle)

"""Lists the extension points in one table: the methods of each, what a metric calls them, and which of them may wait.

What else knows methods by their names is made from it: at which points a plugin takes part (`podium.framework.plugin`),
which names are misspelt and which methods must answer at once (`podium.framework.declarations`), and which calls are
watched for blocking the process (`podium.run.plugin_watchdog`). To add a point, write it into `Point` and here, its
methods' types into `podium.framework.protocols`, and who calls them into `podium.framework.profile`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from podium.config.points import Point
from podium.framework.timer import Step


class Method(NamedTuple):
    """A method of a plugin that is called at an extension point."""

    name: str
    step: Step | None
    """Under which name it is timed; None: it is not."""
    takes_part: bool = True
    """Whether a plugin that has it takes part at the point; otherwise it belongs to another method."""
    may_wait: bool = False
    """Whether it may be a coroutine."""


EXTENSION_POINTS: Final[dict[Point, tuple[Method, ...]]] = {
    Point.PRE_ENQUEUE: (Method("pre_enqueue", Step.PRE_ENQUEUE),),
    Point.QUEUE_SORT: (Method("less", Step.QUEUE_SORT), Method("sort_key", Step.QUEUE_SORT, takes_part=False)),
    Point.PRE_FILTER: (
        Method("pre_filter", Step.PRE_FILTER),
        Method("add_pod", Step.ADD_POD, takes_part=False),
        Method("remove_pod", Step.REMOVE_POD, takes_part=False),
    ),
    Point.FILTER: (Method("filter", Step.FILTER), Method("filter_node", Step.FILTER)),
    Point.POST_FILTER: (Method("post_filter", Step.POST_FILTER),),
    Point.PRE_SCORE: (Method("pre_score", Step.PRE_SCORE),),
    Point.SCORE: (
        Method("score", Step.SCORE),
        Method("score_node", Step.SCORE),
        Method("normalize", Step.NORMALIZE, takes_part=False),
    ),
    Point.RESERVE: (Method("reserve", Step.RESERVE), Method("unreserve", Step.UNRESERVE)),
    Point.PERMIT: (Method("permit", Step.PERMIT), Method("placement_feasible", None, takes_part=False)),
    Point.PRE_BIND: (
        Method("pre_bind", Step.PRE_BIND, may_wait=True),
        Method("pre_bind_preflight", Step.PREFLIGHT, takes_part=False, may_wait=True),
    ),
    Point.BIND: (Method("bind", Step.BIND, may_wait=True),),
    Point.POST_BIND: (Method("post_bind", Step.POST_BIND),),
    Point.PLACEMENT_GENERATE: (Method("generate_placements", None),),
    Point.PLACEMENT_SCORE: (Method("score_placements", None),),
    Point.POD_GROUP_POST_FILTER: (Method("pod_group_post_filter", None),),
}

_ALL: Final = tuple(method for methods in EXTENSION_POINTS.values() for method in methods)
METHODS: Final = tuple(method.name for method in sorted(_ALL, key=lambda method: not method.takes_part))
"""The names of all methods, first of those that make a plugin take part."""
MAY_WAIT: Final = frozenset(method.name for method in _ALL if method.may_wait)


def points_of(plugin: type) -> frozenset[Point]:
    """The extension points at which a class takes part, by the methods that it has."""
    return frozenset(
        point
        for point, methods in EXTENSION_POINTS.items()
        if any(method.takes_part and hasattr(plugin, method.name) for method in methods)
    )

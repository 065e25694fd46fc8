"""Finds which events may help a pod that a plugin rejected, from what the plugin says that its answers depend on.

That is enough for a plugin that rejects at PreFilter or Filter only and has no `answer_key`: it has declared all that
its answers depend on. What other plugins wait for is not known, and any event wakes their pods.

    a declared part    events
    the pod            a change of the waiting pod itself
    OBJECT             a node comes or changes
    TOTALS, PODS       also: a pod on a node comes, changes or goes
    kinds              an object of these kinds comes, changes or goes; None: of any kind that wakes pods
    resources          the same
"""

from __future__ import annotations

from typing import Any, Final

from podium.config.points import Point
from podium.framework.depends_on import NodePart
from podium.framework.events import RESOURCE_OF, USUAL, Action, Interest, Resource
from podium.framework.plugin import Plugin
from podium.framework.protocols import KeyedPlugin
from podium.kube import Pod

_REJECTS_AT: Final = {Point.PRE_FILTER, Point.FILTER}
_NEVER_REJECTS_AT: Final = {Point.QUEUE_SORT, Point.PRE_SCORE, Point.SCORE, Point.POST_BIND}
_OTHER_KINDS: Final = tuple(resource for resource in USUAL if resource not in (Resource.POD, Resource.NODE))


def derived_interests(plugin: Plugin) -> list[Interest] | None:
    """The events that may undo a rejection by a plugin that names none; None: any event may."""
    declared = plugin.depends_on
    if declared.node == NodePart.ANYTHING or isinstance(plugin, KeyedPlugin):
        return None
    if not plugin.points & _REJECTS_AT or plugin.points - _REJECTS_AT - _NEVER_REJECTS_AT:
        return None
    interests = [
        Interest(Resource.UNSCHEDULED_POD, Action.UPDATE, _is_the_pod, by_signature=True),
        Interest(Resource.NODE, Action.ALL & ~Action.DELETE),
    ]
    if declared.node > NodePart.OBJECT:
        interests.append(Interest(Resource.ASSIGNED_POD, Action.ALL))
    kinds = (
        _OTHER_KINDS
        if declared.kinds is None
        else [RESOURCE_OF[kind] for kind in declared.kinds if kind in RESOURCE_OF]
    )
    resources = [resource.partition("/")[0] for resource in plugin.resources]
    return [*interests, *(Interest(each, Action.ALL) for each in dict.fromkeys((*kinds, *resources)))]


def _is_the_pod(pod: Pod, _before: Any, after: Pod | None) -> bool:
    return after is not None and after.uid == pod.uid

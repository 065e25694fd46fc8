"""Defines the plugin contract: a class with a name, typed args, and the extension points it has methods for.

A plugin implements an extension point by defining its method; the runtime finds them. Nothing else needs to be
declared: such a plugin is asked for every pod, and is right. `podium.framework.extension_points` has them in one table.

    point        method                                         answers
    PreEnqueue   pre_enqueue(pod)                               None, or why the pod may not enter the queue
    QueueSort    less(a, b)                                     whether queued pod a goes before b
                 sort_key(queued)                               the same order as a key, if there is one: quicker
    PreFilter    pre_filter(cycle)                              None, SKIP, a set of node names, or a status
                 add_pod(cycle, placed) / remove_pod(…)         the cycle's data as if that pod came or went
    Filter       filter(cycle, nodes)                           None (all pass), bool per node, or a Verdict
                 filter_node(cycle, node)                       None/True, or False, a reason, a status
    PostFilter   post_filter(cycle, diagnosis)                  a PostFilterResult
    PreScore     pre_score(cycle, nodes)                        None, SKIP, or a status
    Score        score(cycle, nodes)                            int64 per node, or one int for all
                 score_node(cycle, node)                        an int
                 normalizer = … or normalize(cycle, nodes, s)   int64 per node, 0–100
    Reserve      reserve(cycle, node) / unreserve(cycle, node)  None or a status
    Permit       permit(cycle, node)                            None, a status, or Wait(seconds)
    PreBind      pre_bind_preflight(cycle, node)                None, or SKIP when there is nothing to do
                 pre_bind(cycle, node)                          None or a status; may be a coroutine
    Bind         bind(cycle, node)                              None, SKIP or a status; may be a coroutine
    PostBind     post_bind(cycle, node)                         nothing

`podium.framework.protocols` explains the methods behind gates of kube-scheduler: `pod_group_post_filter` and
`placement_feasible` (GenericWorkload), `generate_placements` and `score_placements` (TopologyAwareWorkloadScheduling).

`filter` and `score` see all nodes at once, as columns, and are fast; `filter_node` and `score_node` see one and are
easy. A plugin may have both: then the runtime takes the quicker one, and both must agree.

What else makes a plugin faster is one declaration, `depends_on`, with `answer_key(pod)` where it is not enough:
`podium.framework.depends_on` explains both. What few plugins need stands in `podium.framework.plugin_extras`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from podium.framework.depends_on import DependsOn
from podium.framework.events import Interest
from podium.framework.extension_points import points_of
from podium.framework.plugin_extras import PluginExtras

if TYPE_CHECKING:
    from podium.framework.handle import Handle
    from podium.framework.normalize import Normalizer


class Plugin(PluginExtras):
    """Base of all plugins.

    >>> class Quiet(Plugin):
    ...     def score_node(self, cycle, node):
    ...         return 100 if node.labels.get("quiet") == "true" else 0
    >>> Quiet.name, sorted(Quiet.points)
    ('Quiet', [<Point.SCORE: 'score'>])
    """

    name: ClassVar[str] = "Plugin"
    """How configurations refer to the plugin; the class name unless set."""
    Args: ClassVar[type[msgspec.Struct] | None] = None
    """The type of the plugin's arguments: fields with defaults, and `validate(path)` where limits need words."""
    reason: ClassVar[str] = ""
    """Why a node is refused, for a filter that answers only True or False."""
    normalizer: ClassVar[Normalizer | None] = None
    """How its scores are brought to 0–100, where they are not."""
    depends_on: DependsOn = DependsOn()
    """What its answers depend on, of the class or, where the arguments decide it, of the plugin itself. Nothing
    declared: it is asked each time."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__
        if "trusted" not in cls.__dict__:
            cls.trusted = False
        cls.points = points_of(cls)

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        """The arguments, an instance of `Args`."""
        self.handle = handle
        """The way to all that is outside the cycle."""

    def interests(self) -> Iterable[Interest] | None:
        """The events that may undo a rejection by this plugin; None: what `depends_on` says, or any event."""
        return None

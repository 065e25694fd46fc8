"""Defines the plugin contract: a class with a name, typed args, and the extension points it has methods for.

A plugin implements an extension point by defining its method; the runtime finds them. Nothing else needs to be
declared. `podium.framework.extension_points` has them in one table.

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

`metrics()` and `page(others)` offer numbers and a page that the process serves.

With kube-scheduler's gate TopologyAwareWorkloadScheduling also `generate_placements` and `score_placements`, which
`podium.framework.protocols` explains.

`filter` and `score` see all nodes at once, as columns, and are fast; `filter_node` and `score_node` see one and are
easy. A plugin may have both: then the runtime takes the quicker one, and both must agree.

`scope` says how far a plugin looks for its answer about a node, so that answers can be kept and refreshed only where
something moved. The default claims nothing: always asked again, always right. A narrower scope promises that pods equal
in namespace, labels, annotations, owners and spec get equal answers from equal nodes.

Pods that differ in nothing but the names of their persistent volume claims share what is kept. The promise above does
not cover them, so a plugin is asked in full for each other set of claims; `sees_claims = False` says that this is not
needed, because it does not look at claims, or because its `watermark` differs wherever claims make a difference.

Also defines what a plugin may offer to be seen from outside: numbers for `/metrics`, and a page.

The process that runs the plugin serves them: no plugin opens a port.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from podium.config.points import Point
from podium.framework.events import Interest
from podium.framework.extension_points import points_of
from podium.kube import Pod

if TYPE_CHECKING:
    from podium.framework.experience import LearnedState
    from podium.framework.handle import Handle
    from podium.framework.normalize import Normalizer

LabelValues = tuple[str, ...]


class MetricKind(enum.StrEnum):
    """Whether a number only grows."""

    COUNTER = "counter"
    """It does; the name of the metric ends in `_total`."""
    GAUGE = "gauge"


class PluginMetric(NamedTuple):
    """A number, or one for each combination of label values, that is read whenever `/metrics` is."""

    kind: MetricKind
    name: str
    text: str
    """What it counts, in one sentence."""
    read: Callable[[], float | Mapping[LabelValues, float]]
    labels: tuple[str, ...] = ()
    by_profile: bool = True
    """Whether each profile has numbers of its own: then `profile` is the first label. Otherwise those of the first
    profile that has the plugin are shown."""


class PageAnswer(NamedTuple):
    """What a page answers to a request."""

    content_type: str
    body: str | bytes
    """Text is sent as UTF-8, and the content type says so."""


class PluginPage(NamedTuple):
    """A page that is served on a port of its own, on loopback unless asked otherwise."""

    name: str
    """One word, in lower case; of several pages with one name the first is served."""
    title: str
    """How messages call it, such as "QoS page"."""
    port: int
    answer: Callable[[str, Mapping[str, str], str], PageAnswer]
    """Given the path, the query and the Accept header of a request."""


class Write(enum.StrEnum):
    """What a plugin writes to the API server, beside a binding: `podium manifest` grants no more than is declared."""

    EVICTIONS = "evictions"
    """It removes pods to make room."""
    ANNOTATIONS = "annotations"
    """It writes annotations of the pods that it places."""
    VOLUMES = "volumes"
    """It binds persistent volumes and claims."""
    CLAIMS = "claims"
    """It allocates resource claims."""


class Scope(enum.IntEnum):
    """How far a plugin looks for its answer about one node."""

    NODE = 0
    """The Node object alone: labels, taints, allocatable, annotations."""
    TOTALS = 1
    """Also the sums over its pods: requested resources, pod count."""
    PODS = 2
    """Also which pods are on it."""
    CLUSTER = 3
    """Anything else: other nodes, other objects, the clock. `watermark` may narrow this."""


class Plugin:
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
    points: ClassVar[frozenset[Point]] = frozenset()
    """The extension points it implements, found from its methods."""
    filter_scope: Scope = Scope.CLUSTER
    score_scope: Scope = Scope.CLUSTER
    """The scopes, of the class or, where the arguments decide it, of the plugin itself."""
    sees_claims: ClassVar[bool] = True
    """Whether pods with equal watermarks that differ only in the claims they name may get different answers."""
    normalizer: ClassVar[Normalizer | None] = None
    reason: ClassVar[str] = ""
    """What a filter that answers only True or False is said to have found wrong."""
    first_of_equals: ClassVar[bool] = False
    """A score plugin that wants ties to go to the first node in the cluster's order, the same from pod to pod, instead
    of the node that kube-scheduler's heap gives up first."""
    watches_ended_pods: ClassVar[bool] = False
    """Whether `observe` must see how pods end: a scheduler watches only those that have not, unless a plugin asks."""
    looks_at: ClassVar[tuple[type, ...] | None] = None
    """With a scope of CLUSTER: the kinds that it reads, other than nodes and pods; None: it may be any."""
    resources: ClassVar[tuple[str, ...]] = ()
    """Other kinds that it reads, as they are written: custom resources ("plural.group/version"), and "configmaps/v1",
    "limitranges/v1", "resourcequotas/v1". They are watched; `cluster.objects.custom_store("plural.group")` has them."""
    learned_state: ClassVar[LearnedState | None] = None
    """The ConfigMap that it writes, for the manifests of extenders: what `learn` is given unless arguments differ."""
    prepares_in_parallel: ClassVar[bool] = False
    """Whether its PreBind may run together with that of its neighbours, where they allow that, too."""
    signs_pods: bool = True
    """Whether `sign_pod` has an answer for some pods; of the plugin itself, where the arguments decide it."""
    writes: ClassVar[tuple[Write, ...] | None] = None
    """What it writes, which needs the right to; None: nothing, or evictions where it has PostFilter."""
    reads_images: ClassVar[bool] = False
    """Whether it reads which images nodes have. `podium extender` decodes them for such a plugin, and for any that is
    not trusted."""
    trusted: ClassVar[bool] = False
    """Skips checks that guard against mistakes of its author; counts only for the class that says so itself, not for
    subclasses."""

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
        """The events that may undo a rejection by this plugin; None: any event may."""
        return None

    def watermark(self, pod: Pod) -> Hashable:
        """What else than `scope` says the answer depends on: while it is equal, a kept answer holds.

        It holds whatever pods come and go, in earnest or in a dry run that tries the pods nominated to a node. None
        means "cannot tell": never keep. The empty tuple promises that it never will change for pods of this kind.
        SKIP is an answer about the pod: it, too, holds while the watermark is equal, whichever nodes are feasible.
        """
        return None

    def sign_pod(self, pod: Pod) -> Hashable:
        """What its answers depend on of a pod. Pods for which all plugins say the same may be placed in one batch, as
        in kube-scheduler (OpportunisticBatching). None: the pod cannot be compared with others. A plugin at PreFilter,
        Filter, PreScore or Score that has no such method keeps all pods of its profile from being compared.
        """
        return None

    def observe(self, resource: str, before: Any, after: Any) -> None:
        """Hears of every change of pods and of its own `resources`, for plugins that keep accounts."""

    def metrics(self) -> Iterable[PluginMetric]:
        """Numbers that the process shows on `/metrics`; asked once, at the start."""
        return ()

    def page(self, others: Sequence[Plugin]) -> PluginPage | None:
        """A page that the process serves. Asked once, of the plugin in the first profile that has it; `others` are
        those of the other profiles."""
        return None

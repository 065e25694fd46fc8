"""Defines what few plugins need: what they offer to be seen from outside, write, observe, or ask of the engine.

`Plugin` inherits all of it, so any plugin may set or define these. The process that runs a plugin serves its numbers
and its page: no plugin opens a port.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from podium.config.points import Point

if TYPE_CHECKING:
    from podium.framework.plugin import Plugin
    from podium.framework.pod_outcomes import LearnedState

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


class PluginExtras:
    """What few plugins need, with defaults for all others."""

    points: ClassVar[frozenset[Point]] = frozenset()
    """The extension points it implements, found from its methods; not to be set."""
    resources: ClassVar[tuple[str, ...]] = ()
    """Kinds that it reads as they are written: custom resources ("plural.group/version"), and "configmaps/v1",
    "limitranges/v1", "resourcequotas/v1". They are watched; `cluster.objects.custom_store("plural.group")` has them."""
    writes: ClassVar[tuple[Write, ...] | None] = None
    """What it writes, which needs the right to; None: nothing, or evictions where it has PostFilter."""
    watches_ended_pods: ClassVar[bool] = False
    """Whether `observe` must see how pods end: a scheduler watches only those that have not, unless a plugin asks."""
    learned_state: ClassVar[LearnedState | None] = None
    """The ConfigMap that it writes, for the manifests of extenders: what `learn` is given unless arguments differ."""
    first_of_equals: ClassVar[bool] = False
    """A score plugin that wants ties to go to the first node in the cluster's order, the same from pod to pod, instead
    of the node that kube-scheduler's heap gives up first."""
    prepares_in_parallel: ClassVar[bool] = False
    """Whether its PreBind may run together with that of its neighbours, where they allow that, too."""
    reads_images: ClassVar[bool] = False
    """Whether it reads which images nodes have. `podium extender` decodes them for such a plugin, and for any that is
    not trusted."""
    trusted: ClassVar[bool] = False
    """Skips checks that guard against mistakes of its author; counts only for the class that says so itself, not for
    subclasses."""

    def observe(self, resource: str, before: Any, after: Any) -> None:
        """Called for every change of pods and of its own `resources`, for plugins that keep accounts."""

    def metrics(self) -> Iterable[PluginMetric]:
        """Numbers that the process shows on `/metrics`; asked once, at the start."""
        return ()

    def page(self, others: Sequence[Plugin]) -> PluginPage | None:
        """A page that the process serves. Asked once, of the plugin in the first profile that has it; `others` are
        those of the other profiles."""
        return None

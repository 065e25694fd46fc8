"""Defines what a plugin may implement: one Protocol for each method of an extension point.

`podium.framework.plugin` says what the methods mean. A plugin need not name these: the runtime finds out, once, when a
profile is built (`podium.framework.methods`).

Also defines a placement: the nodes that all members of a PodGroup are tried on, and who makes and scores placements.

With the gate TopologyAwareWorkloadScheduling a group is tried on one placement after another, and goes to the best of
those that take it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from podium.cluster import Mask, NodeInfo, Nodes, PlacedPod, Rows
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, PostFilterResult, Verdict
from podium.framework.gang import GroupFit, GroupRoom, PlacementProgress
from podium.framework.handle import Effect
from podium.framework.normalize import Scores
from podium.framework.status import Status, Wait
from podium.kube import Pod, PodGroup

if TYPE_CHECKING:
    from podium.framework.queued import QueuedPod


FilterNodes = Callable[[Cycle, Nodes], Verdict | Mask | None]
FilterNode = Callable[[Cycle, NodeInfo], Status | str | bool | None]
ScoreNodes = Callable[[Cycle, Nodes], Scores | int]
ScoreNode = Callable[[Cycle, NodeInfo], int]
Normalize = Callable[[Cycle, Nodes, Scores], Scores]
AdjustPods = Callable[[Cycle, PlacedPod], Status | None]
OnNode = Callable[[Cycle, str], Effect]
"""(cycle, node name) → the outcome, at once or when awaited."""


class ModelAnswer(NamedTuple):
    """Who decided where a plugin may ask a model."""

    plugin: str
    decided_by: str
    """model, or fallback."""
    reason: str
    """Why it was the fallback; empty where it was the model."""
    milliseconds: float
    """How long the model was waited for."""


@runtime_checkable
class ModelPlugin(Protocol):
    """A plugin that asks a model: for explanations, and for simulations."""

    not_reproducible: str | None
    """Why a simulation with it can't be repeated, where real time had a part in its decisions."""

    def model_answer(self, cycle: Cycle, /) -> ModelAnswer | None: ...


@runtime_checkable
class PreEnqueuePlugin(Protocol):
    def pre_enqueue(self, pod: Pod, /) -> Status | None: ...


@runtime_checkable
class QueueSortPlugin(Protocol):
    name: str

    def less(self, a: QueuedPod, b: QueuedPod, /) -> bool: ...


@runtime_checkable
class KeyedQueueSortPlugin(Protocol):
    """A QueueSort plugin that also has the order as a key, asked once per pod instead of `less`."""

    def sort_key(self, queued: QueuedPod, /) -> Any: ...


@runtime_checkable
class PreFilterPlugin(Protocol):
    def pre_filter(self, cycle: Cycle, /) -> Status | Set[str] | None: ...


@runtime_checkable
class AddsPods(Protocol):
    """A PreFilter plugin whose data in the cycle follows pods that come, in a dry run."""

    def add_pod(self, cycle: Cycle, placed: PlacedPod, /) -> Status | None: ...


@runtime_checkable
class RemovesPods(Protocol):
    """A PreFilter plugin whose data in the cycle follows pods that go, in a dry run."""

    def remove_pod(self, cycle: Cycle, placed: PlacedPod, /) -> Status | None: ...


@runtime_checkable
class FilterPlugin(Protocol):
    def filter(self, cycle: Cycle, nodes: Nodes, /) -> Verdict | Mask | None: ...


@runtime_checkable
class NodeFilterPlugin(Protocol):
    def filter_node(self, cycle: Cycle, node: NodeInfo, /) -> Status | str | bool | None: ...


@runtime_checkable
class PostFilterPlugin(Protocol):
    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis, /) -> PostFilterResult: ...


@runtime_checkable
class PodGroupPostFilterPlugin(Protocol):
    """A plugin that can make room for a whole PodGroup."""

    def pod_group_post_filter(self, group: PodGroup, pods: Sequence[Pod], fit: GroupFit, /) -> GroupRoom: ...


@runtime_checkable
class PlacementFeasiblePlugin(Protocol):
    """A plugin that knows how many members of a PodGroup must have a node."""

    name: str

    def placement_feasible(self, group: PodGroup, progress: PlacementProgress, /) -> Status | None:
        """None: enough have one. Code WAIT: not yet. Unschedulable: there can no longer be enough."""


@runtime_checkable
class PreScorePlugin(Protocol):
    def pre_score(self, cycle: Cycle, nodes: Nodes, /) -> Status | None: ...


@runtime_checkable
class ScorePlugin(Protocol):
    def score(self, cycle: Cycle, nodes: Nodes, /) -> Scores | int: ...


@runtime_checkable
class NodeScorePlugin(Protocol):
    def score_node(self, cycle: Cycle, node: NodeInfo, /) -> int: ...


@runtime_checkable
class NormalizePlugin(Protocol):
    def normalize(self, cycle: Cycle, nodes: Nodes, scores: Scores, /) -> Scores: ...


@runtime_checkable
class ReservePlugin(Protocol):
    def reserve(self, cycle: Cycle, node_name: str, /) -> Status | None: ...


@runtime_checkable
class UnreservePlugin(Protocol):
    def unreserve(self, cycle: Cycle, node_name: str, /) -> None: ...


@runtime_checkable
class PermitPlugin(Protocol):
    def permit(self, cycle: Cycle, node_name: str, /) -> Status | Wait | None: ...


@runtime_checkable
class PreBindPreFlightPlugin(Protocol):
    def pre_bind_preflight(self, cycle: Cycle, node_name: str, /) -> Effect: ...


@runtime_checkable
class PreBindPlugin(Protocol):
    def pre_bind(self, cycle: Cycle, node_name: str, /) -> Effect: ...


@runtime_checkable
class BindPlugin(Protocol):
    def bind(self, cycle: Cycle, node_name: str, /) -> Effect: ...


@runtime_checkable
class PostBindPlugin(Protocol):
    def post_bind(self, cycle: Cycle, node_name: str, /) -> None: ...


class DeviceUse(NamedTuple):
    """A device that a claim of a pod has, or would get."""

    claim: str
    request: str
    driver: str
    pool: str
    device: str


@runtime_checkable
class KeyedPlugin(Protocol):
    """One whose answers depend on more than `depends_on` says."""

    def answer_key(self, pod: Pod, /) -> Hashable:
        """Equal for as long as the answers about pods like this one hold; None: do not keep them."""


@runtime_checkable
class AllocatingPlugin(Protocol):
    """One that gives pods devices."""

    def devices_on(self, cycle: Cycle, node_name: str, /) -> list[DeviceUse] | None:
        """What the claims of the cycle's pod have, or would get on a node where it fits; None of a pod without."""


@runtime_checkable
class ExplainingPlugin(Protocol):
    """A plugin that has more to say than its reasons about a pod that it rejects, when it is asked."""

    def explain(self, pod: Pod, /) -> list[str]:
        """Sentences for people; none where there is nothing to add."""


@runtime_checkable
class GrantingPlugin(Protocol):
    """A plugin that rejects pods by objects of its own, and knows how these would have to be."""

    def grants(self, pod: Pod, /) -> list[tuple[str, str, Any, list[str]]]:
        """The smallest changes with which it would let the pod come; none where it does already.

        Each is a custom resource, the key of the object, its data as they would have to be, and what differs, in words.
        """


class Placement(NamedTuple):
    """Some nodes by their rows, in visiting order; `name` is what they have in common."""

    name: str
    rows: Rows


class TriedPlacement(NamedTuple):
    """A placement that takes the group, with the members that would go there."""

    placement: Placement
    pods: Sequence[Pod]


@runtime_checkable
class PlacementGeneratePlugin(Protocol):
    name: str

    def generate_placements(self, key: str, group: PodGroup | None, rows: Rows, /) -> Sequence[Placement] | Status:
        """The placements to try for the group ("namespace/name"), made of these rows; or why there can be none."""


@runtime_checkable
class PlacementScorePlugin(Protocol):
    name: str

    def score_placements(self, key: str, tried: Sequence[TriedPlacement], /) -> Sequence[int] | Status:
        """A score for each, 0–100, more is better; or what went wrong."""

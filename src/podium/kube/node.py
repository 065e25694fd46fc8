"""Types the node: what it offers, what it keeps away, and the images it already holds."""

from msgspec import field

from podium.kube.meta import ClusterObject, Condition, Model, Resources


class Taint(Model, frozen=True, kw_only=True):
    """A taint of a node; pods without a toleration are kept away."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(Model, frozen=True, kw_only=True):
    """What keeps pods away from a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class ContainerImage(Model, frozen=True, kw_only=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeAddress(Model, frozen=True, kw_only=True):
    type: str = ""
    address: str = ""


class NodeStatus(Model, frozen=True, kw_only=True):
    """What a node offers, and the images it holds."""

    allocatable: Resources = field(default_factory=dict)
    capacity: Resources = field(default_factory=dict)
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(ClusterObject, frozen=True, kw_only=True):
    """A node of the cluster: its labels and taints, and what it has to give (`status.allocatable`)."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.spec.taints

    @property
    def unschedulable(self) -> bool:
        return self.spec.unschedulable

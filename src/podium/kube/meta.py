"""Types what every Kubernetes object carries: its metadata, its owners, and the label selectors that point at others.

The structs here and in the sibling modules hold the fields that scheduling reads, under their wire names, and ignore
the rest; they are values (frozen), so a changed object is a new object. Times stay as the RFC 3339 text the API
server wrote and quantities stay as written, because most of them are never looked at: `parse_time` and
`kubecel.quantity` turn them into numbers when they are.
"""

from datetime import UTC, datetime

import msgspec
from msgspec import field

from kubecel import quantity

Amount = quantity.Amount

Resources = dict[str, Amount]
"""Resource name to quantity: what a container asks for, what a node offers."""

DEFAULT_NAMESPACE = "default"


class Model(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """The settings every API struct shares (subclasses repeat `frozen` and `kw_only`, which do not carry over)."""


class OwnerReference(Model, frozen=True, kw_only=True):
    """An object that owns another."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Model, frozen=True, kw_only=True):
    """Name, labels, annotations, owners and times of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if it has one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class ClusterObject(Model, frozen=True, kw_only=True):
    """An object that belongs to the whole cluster; its name alone identifies it."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations

    @property
    def key(self) -> str:
        return self.metadata.name

    @property
    def terminating(self) -> bool:
        """Whether deletion has been asked for."""
        return self.metadata.deletion_timestamp is not None


class NamespacedObject(ClusterObject, frozen=True, kw_only=True):
    """An object that lives in a namespace; "namespace/name" identifies it."""

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or DEFAULT_NAMESPACE

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace or DEFAULT_NAMESPACE}/{self.metadata.name}"


class ObjectReference(Model, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class LabelSelectorRequirement(Model, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Model, frozen=True, kw_only=True):
    """Labels that an object must have."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Model, frozen=True, kw_only=True):
    """A condition of a pod, a node or any other object: they differ only in fields that scheduling does not read."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None


def parse_time(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time, e.g. "2026-01-31T12:00:00Z"."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f'time "{text}" has no zone; write it like "2026-01-31T12:00:00Z"')
    return moment.timestamp()


def format_time(seconds: float) -> str:
    """The RFC 3339 text of a time, in whole seconds as the API server writes it."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

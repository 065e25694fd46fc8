"""Defines what a controller of a custom resource declares (what it reads, what it writes) and what it gives.

A controller compares what is with what should be, and does no input or output: `reconcile.py` gathers what it needs,
and writes, records and reports what it gives. The rights of the process follow from what its controllers declare.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from podium.client import ApiResource
from podium.kube.json_object import JsonObject

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
INVALID: Final = "Invalid"
"""The reason of the event about an object that cannot mean what it says."""

Related = Mapping[str, Collection[Any]]
"""What a result depends on, by the plural name of its collection: "pods", "nodes"."""


class RelatedCollection(NamedTuple):
    """A collection that outcomes depend on. An object of it concerns the custom resources of the same group."""

    resource: ApiResource[Any]
    group_of: Callable[[Any], Hashable | None]
    """The group of an object; None where it concerns no custom resource."""
    group_of_item: Callable[[JsonObject], Hashable]
    """The same of a custom resource."""


class FetchedObject(NamedTuple):
    """An object of the custom resource's namespace that is read by its name, each time that it is needed."""

    resource: ApiResource[Any]
    name_of: Callable[[JsonObject], str]
    """Its name, from the custom resource; empty where none is needed now."""


class EventNote(NamedTuple):
    """What an event says."""

    type: str
    reason: str
    note: str


class ReconcileResult(NamedTuple):
    """What should be written, said and done about one custom resource."""

    status: JsonObject | None = None
    """The status where it differs."""
    spec: JsonObject | None = None
    """The parts of the spec that differ."""
    event: EventNote | None = None
    """Recorded when all of it has been written."""
    problem: EventNote | None = None
    """What is wrong with the object: recorded and logged when it is new."""
    due: float | None = None
    """Seconds after which to look again, whatever happens."""


class Controller(Protocol):
    """Keeps one kind of custom resource up to date."""

    @property
    def name(self) -> str:
        """As `--controllers` has it."""

    @property
    def kind(self) -> str: ...

    @property
    def resource(self) -> ApiResource[JsonObject]: ...

    @property
    def related(self) -> Sequence[RelatedCollection]: ...

    @property
    def fetched(self) -> FetchedObject | None: ...

    @property
    def written(self) -> Sequence[str]:
        """What it patches: "podgroups/status" for a status, "networktopologies" for the object itself."""

    def reconcile(self, item: JsonObject, related: Related) -> ReconcileResult:
        """What follows from a custom resource and what it depends on."""


def invalid(sentence: str) -> EventNote:
    """The problem of an object that cannot mean what it says."""
    return EventNote(WARNING, INVALID, sentence)


def everything(_item: object) -> Hashable:
    """The one group of objects that concern all."""
    return ()


def namespaced(path: str, namespace: str) -> str:
    """The path of a collection in one namespace.

    >>> namespaced("/apis/scheduling.x-k8s.io/v1alpha1/podgroups", "default")
    '/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups'
    """
    folder, _, plural = path.rpartition("/")
    return f"{folder}/namespaces/{namespace}/{plural}"

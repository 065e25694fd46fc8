"""Declares what the API does to objects of one kind beyond storing them, and how it shows them.

`prepare_…` change the new object in place: they drop what the writer may not set and fill in what the server decides.
`validate…` only look, and tell what is wrong. The order is kube-apiserver's: prepare, validate, then the checks that
hold for every kind's metadata (validation/metadata.py). A kind says nothing about what it has no rule for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from kubecel.names import dns_subdomain_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.table_cells import KindTable
from podium_cluster.apiserver.write_context import WriteContext


def _leave(obj: JsonObject, context: WriteContext) -> None:
    pass


def _leave_both(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    pass


def _fine(obj: JsonObject) -> Iterable[Cause]:
    return ()


def _fine_both(new: JsonObject, old: JsonObject) -> Iterable[Cause]:
    return ()


def _deletable(stored: Stored) -> None:
    pass


class KindRules(msgspec.Struct, frozen=True):
    """`status_on_create`: who creates may write the status too. `update_creates`: a PUT of what does not exist creates
    it. `update_needs_version`: a PUT must say which resourceVersion it replaces. `returns_deleted`: a DELETE answers
    with the object, not a Status."""

    prepare_for_create: Callable[[JsonObject, WriteContext], None] = _leave
    prepare_for_update: Callable[[JsonObject, JsonObject, WriteContext], None] = _leave_both
    prepare_for_status: Callable[[JsonObject, JsonObject, WriteContext], None] = _leave_both
    validate: Callable[[JsonObject], Iterable[Cause]] = _fine
    validate_update: Callable[[JsonObject, JsonObject], Iterable[Cause]] = _fine_both
    validate_status: Callable[[JsonObject, JsonObject], Iterable[Cause]] = _fine_both
    admit: Callable[[JsonObject, WriteContext], None] = _leave
    """Admission on create, before anything else; raises StatusError."""
    check_deletion: Callable[[Stored], None] = _deletable
    """Admission on delete; raises StatusError."""
    name_errors: Callable[[str], Sequence[str]] = dns_subdomain_errors
    grace_seconds: Callable[[JsonObject, int | None], int] | None = None
    """How long a deletion waits, from the object and from what the request asked for; None: it never does."""
    generation: Literal["", "spec", "whole object"] = ""
    """What is counted in metadata.generation: changes of the spec, or of all but metadata and status; "": nothing."""
    metadata_with_status: Literal["all", "all but labels", "none"] = "all"
    """Which metadata a write of the status may change. Kubelets and old controllers change labels and annotations."""
    status_on_create: bool = False
    update_creates: bool = False
    update_needs_version: bool = False
    returns_deleted: bool = False
    empty_status: dict[str, Any] | None = None
    """What an object of this kind has as its status until one is written; None: no such field."""


PLAIN = KindRules()


class KindRecord(msgspec.Struct, frozen=True, eq=False):
    """All that the API knows of one built-in kind. Without a table, `kubectl get` shows name and time of creation."""

    kind: Kind
    rules: KindRules = PLAIN
    table: KindTable | None = None

"""Declares how a request wants to write or delete."""

from __future__ import annotations

import msgspec


class WriteOptions(msgspec.Struct, frozen=True):
    """The options of a create, an update or a patch. `force` is server-side apply's; `is_patch` writes need not name a
    version. `raw` is the text of the body, where there is one; `warnings` collects what the answer warns about."""

    dry_run: bool = False
    field_validation: str = ""
    manager: str = ""
    force: bool = False
    is_patch: bool = False
    raw: bytes | None = None
    warnings: list[str] = msgspec.field(default_factory=list)


class DeleteOptions(msgspec.Struct, frozen=True):
    """The options of a deletion, preconditions included."""

    grace_seconds: int | None = None
    propagation: str = ""
    orphan_dependents: bool | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

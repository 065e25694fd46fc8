"""Merges by server-side apply: each manager declares the fields it wants, and the server records who owns what.

Applying merges the declared fields into the live object; fields the manager declared last time and no longer
declares are removed unless another manager owns them; a field that another manager owns and that would change is a
conflict, unless forced. Ownership is shared when two managers declare the same value. An ordinary update takes the
fields it changes.

Objects that were never applied carry no managedFields; their first apply finds everything owned by
`before-first-apply`, or by the manager the caller names.

Before that it checks an applied configuration against the schema: unknown fields, wrong types and repeated entries, as
apply words them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from podium_cluster.apiserver.errors import Cause, StatusError, apply_conflict, bad_request, shown_json, too_many_values
from podium_cluster.apiserver.writes.patches import managed_fields
from podium_cluster.apiserver.writes.patches.json_patch import same
from podium_cluster.apiserver.writes.patches.managed_fields import (
    Managed,
    ManagedFieldsEntry,
    Manager,
    Path,
    Paths,
    display,
    display_step,
    field_step,
    reading_order,
)
from podium_cluster.apiserver.writes.patches.typed_values import (
    ABSENT,
    BadValueError,
    MergeType,
    TypedComparison,
    compare,
    fields_of,
    is_larger,
    list_step,
    merge,
    remove,
    with_named_fields,
    without_below,
    without_nulls,
)

BEFORE_FIRST_APPLY = "before-first-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MOST_ANNOTATION_BYTES = 256 * 1024


def _fields(*names: str) -> Path:
    return tuple(map(field_step, names))


NEVER_OWNED: Paths = frozenset(
    [
        _fields("apiVersion"),
        _fields("kind"),
        _fields("metadata"),
        *(
            _fields("metadata", name)
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)


MOST_VALUES: Final = 20_000
"""Values of an object whose owners are distinguished, field by field: each takes tens of microseconds."""


class _ConflictsError(Exception):
    def __init__(self, conflicts: dict[Manager, Paths]) -> None:
        self.conflicts = conflicts


def server_side_apply(
    live: dict[str, Any] | None,
    applied: dict[str, Any],
    *,
    manager: str,
    force: bool,
    schema: MergeType,
    now: datetime,
    subresource: str = "",
    reset: Iterable[str] = (),
    previous_manager: str = BEFORE_FIRST_APPLY,
) -> dict[str, Any]:
    """The object after the apply, managedFields included; without a live object, a new one.

    `reset` names what this endpoint does not let anyone set ("status", or "spec" on the status subresource): it is
    never owned through it.
    """
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
        raise bad_request("metadata.managedFields must be nil")
    check_applied(applied, schema)
    operation = _Operation(schema, applied["apiVersion"], subresource, _roots(reset), managed_fields.timestamp(now))
    existing = _without_managed(live) if live is not None else {}
    if is_larger(applied, MOST_VALUES) or is_larger(existing, MOST_VALUES):
        raise too_many_values(MOST_VALUES)
    try:
        managed = managed_fields.decode(((live or {}).get("metadata") or {}).get("managedFields"))
    except ValueError as error:
        raise StatusError(500, "", f"failed to decode managed fields: {error}") from error
    if live is not None and not managed:
        managed = operation.update({}, existing, managed, previous_manager)
    try:
        result, managed = operation.apply(existing, applied, managed, manager, force=force)
    except _ConflictsError as error:
        allowed = operation.unchanged_since_last_applied(existing) if manager == "kubectl" else frozenset()
        conflicts = {owner: paths - allowed for owner, paths in error.conflicts.items() if paths - allowed}
        if conflicts:
            raise _conflict_error(conflicts, managed) from error
        result, managed = operation.apply(existing, applied, managed, manager, force=True)
    if manager == "kubectl":
        _renew_last_applied(result, applied)
    return _with_managed(result, managed)


def track_update(
    live: dict[str, Any] | None,
    new: dict[str, Any],
    *,
    manager: str,
    schema: MergeType,
    now: datetime,
    subresource: str = "",
    reset: Iterable[str] = (),
) -> dict[str, Any]:
    """An ordinary write: who owns what afterwards. An object that was never applied stays without managedFields."""
    metadata = new.get("metadata") or {}
    given = metadata.get("managedFields")
    held = ((live or {}).get("metadata") or {}).get("managedFields")
    if given in ([], [{}]) and not subresource:
        return _without_managed(new)
    managed = _decoded_or_empty(given) if not subresource else {}
    managed = managed or _decoded_or_empty(held)
    stripped = _without_managed(new)
    if not managed or is_larger(stripped, MOST_VALUES):
        return stripped
    operation = _Operation(schema, new["apiVersion"], subresource, _roots(reset), managed_fields.timestamp(now))
    try:
        managed = operation.update(_without_managed(live or {}), stripped, managed, manager)
    except BadValueError:
        return stripped
    return _with_managed(stripped, managed)


class _Operation:
    """One write through one endpoint."""

    def __init__(self, schema: MergeType, api_version: str, subresource: str, reset: Paths, time: str) -> None:
        self.schema = schema
        self.api_version = api_version
        self.subresource = subresource
        self.reset = reset
        self.time = time

    def update(self, live: dict[str, Any], new: dict[str, Any], managed: Managed, name: str) -> Managed:
        """The changed fields belong to the manager that changed them, and to no other."""
        changes = compare(live, new, self.schema)
        visible = changes.without(self.reset)
        managed = self._after(managed, visible, None, force=True)
        taken = without_below(changes.modified | changes.added, self.reset) - NEVER_OWNED
        if taken:
            me = managed_fields.updater(name, self.api_version, self.subresource)
            before = managed[me].fields if me in managed else frozenset()
            managed[me] = ManagedFieldsEntry(before | taken, self.api_version, self.time)
        return managed_fields.capped(managed)

    def apply(
        self, live: dict[str, Any], applied: dict[str, Any], managed: Managed, name: str, *, force: bool
    ) -> tuple[dict[str, Any], Managed]:
        me = managed_fields.applier(name, self.subresource)
        last = managed[me].fields if me in managed else frozenset()
        claimed = without_below(fields_of(applied, self.schema), self.reset)
        merged = merge(live, applied, self.schema)
        merged = {} if merged is ABSENT else merged
        managed = {
            **managed,
            me: ManagedFieldsEntry(claimed, self.api_version, managed[me].time if me in managed else None),
        }
        result = without_nulls(self._pruned(merged, managed, last) or {})
        managed = self._after(managed, compare(live, result, self.schema).without(self.reset), me, force=force)
        if me in managed:
            owned = managed[me].fields - NEVER_OWNED
            changed = not same(live, result)
            managed[me] = managed[me]._replace(fields=owned, time=self.time if changed else managed[me].time)
            if not owned:
                del managed[me]
        return result, managed

    def _pruned(self, merged: dict[str, Any], managed: Managed, last: Paths) -> Any:
        """Without what the manager gave up, where no other manager owns it."""
        if not last:
            return merged

        def named(paths: Paths) -> Paths:
            return with_named_fields(paths, self.schema)

        everything = named(fields_of(merged, self.schema))
        pruned = remove(merged, named(last), self.schema)
        owned = named(frozenset().union(*(entry.fields for entry in managed.values())))
        pruned = remove(merged, everything - (named(fields_of(pruned, self.schema)) | owned), self.schema)
        gone = (everything - named(fields_of(pruned, self.schema))) & named(last)
        return remove(merged, gone, self.schema)

    def _after(self, managed: Managed, changes: TypedComparison, me: Manager | None, *, force: bool) -> Managed:
        """The fields of the other managers after these changes; raises where one would lose a field and may not."""
        touched = changes.modified | changes.added
        conflicts = {owner: entry.fields & touched for owner, entry in managed.items() if owner != me}
        conflicts = {owner: paths for owner, paths in conflicts.items() if paths}
        if conflicts and not force:
            raise _ConflictsError(conflicts)
        left: Managed = {}
        for owner, entry in managed.items():
            fields = entry.fields if owner == me else entry.fields - conflicts.get(owner, frozenset()) - changes.removed
            if fields:
                left[owner] = entry._replace(fields=fields)
        return left

    def unchanged_since_last_applied(self, live: dict[str, Any]) -> Paths:
        """What kubectl's client-side apply wrote and that is unchanged since: kubectl may take these over."""
        annotation = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED, "")
        try:
            last = json.loads(annotation)
            if not isinstance(last, dict) or last.get("apiVersion") != self.api_version:
                return frozenset()
            differences = compare(last, live, self.schema)
            return fields_of(last, self.schema) - differences.modified - differences.added - differences.removed
        except (ValueError, BadValueError):
            return frozenset()


def _conflict_error(conflicts: dict[Manager, Paths], managed: Managed) -> StatusError:
    found = [
        (owner, path)
        for owner in sorted(conflicts, key=lambda owner: owner.order)
        for path in reading_order(conflicts[owner])
    ]
    causes = [
        Cause("FieldManagerConflict", f"conflict with {_shown(owner, managed)}", display(path)) for owner, path in found
    ]
    if len(found) == 1:
        owner, path = found[0]
        return apply_conflict(
            f"Apply failed with 1 conflict: conflict with {_shown(owner, managed)}: {display(path)}", causes
        )
    lines = []
    for owner in sorted(conflicts, key=lambda owner: owner.order):
        lines.append(f"conflicts with {_shown(owner, managed)}:")
        lines += [f"- {display(path)}" for path in reading_order(conflicts[owner])]
    return apply_conflict(f"Apply failed with {len(found)} conflicts: " + "\n".join(lines), causes)


def _shown(owner: Manager, managed: Managed) -> str:
    name = json.dumps(owner.name, ensure_ascii=False)
    if owner.subresource:
        name += f' with subresource "{owner.subresource}"'
    return f"{name} using {owner.api_version}" if owner.operation == "Update" else name


def _renew_last_applied(result: dict[str, Any], applied: dict[str, Any]) -> None:
    """kubectl keeps its client-side annotation true, where there is one."""
    annotations = (result.get("metadata") or {}).get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return
    bare = copy.deepcopy(applied)
    (bare.get("metadata", {}).get("annotations") or {}).pop(LAST_APPLIED, None)
    annotations[LAST_APPLIED] = json.dumps(bare, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MOST_ANNOTATION_BYTES:
        del annotations[LAST_APPLIED]


def _roots(names: Iterable[str]) -> Paths:
    return frozenset(_fields(*name.split(".")) for name in names)


def _decoded_or_empty(entries: list[dict[str, Any]] | None) -> Managed:
    try:
        return managed_fields.decode(entries)
    except ValueError:
        return {}


def _without_managed(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj.get("metadata")
    if not metadata or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def _with_managed(obj: dict[str, Any], managed: Managed) -> dict[str, Any]:
    if not managed:
        return _without_managed(obj)
    return {**obj, "metadata": {**(obj.get("metadata") or {}), "managedFields": managed_fields.encode(managed)}}


def check_applied(applied: dict[str, Any], schema: MergeType) -> None:
    """Raises what the API answers to a configuration that does not fit."""
    problems = _problems(applied, schema)
    if not problems:
        return
    message = problems[0] if len(problems) == 1 else "errors:\n" + "\n".join(f"  {problem}" for problem in problems)
    raise StatusError(500, "", f"failed to create typed patch object ({_subject(applied)}): {message}")


def check_type(applied: dict[str, Any], api_version: str, kind: str) -> None:
    """What is applied names its own type; it must be that of the address."""
    given = _word(applied.get("apiVersion")), _word(applied.get("kind"))
    if given != (api_version, kind):
        raise bad_request(f"invalid object type: {_named_type(*given)}")


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _named_type(api_version: str, kind: str) -> str:
    return f"{api_version if '/' in api_version else '/' + api_version}, Kind={kind}"


def _subject(applied: dict[str, Any]) -> str:
    metadata = applied.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    kind = _named_type(applied.get("apiVersion", ""), applied.get("kind", ""))
    namespace, name = (value if isinstance(value := metadata.get(key), str) else "" for key in ("namespace", "name"))
    return f"{namespace}/{name}; {kind}"


def _problems(value: Any, kind: MergeType | None) -> list[str]:
    if kind is None or value is None or kind.form == "anything":
        return []
    match kind.form:
        case "struct" | "map":
            return _map_problems(value, kind)
        case "list":
            return _list_problems(value, kind)
    wanted = _SCALARS[kind.form]
    fits = isinstance(value, wanted) and (kind.form != "number" or not isinstance(value, bool))
    return [] if fits else [_expected(kind.form, value)]


_SCALARS: Final[dict[str, tuple[type, ...]]] = {
    "number": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "scalar": (bool, int, float, str),
}


def _expected(form: str, value: Any) -> str:
    return f": expected {form}, got {shown_json(value)}"


def _map_problems(value: Any, kind: MergeType) -> list[str]:
    if not isinstance(value, dict):
        return [_expected("map", value)]
    found: list[str] = []
    for name, inner in value.items():
        step = display_step(field_step(name))
        declared = kind.field(name) if kind.form == "struct" else None
        if declared is None and kind.element is None:
            return [*found, f"{step}: field not declared in schema"]
        found += [step + problem for problem in _problems(inner, declared or kind.element)]
    return found


def _list_problems(value: Any, kind: MergeType) -> list[str]:
    if not isinstance(value, list):
        return [_expected("list", value)]
    found: list[str] = []
    seen = set()
    for at, item in enumerate(value):
        if kind.atomic:
            shown = f"[{at}]"
        else:
            try:
                step = list_step(kind, item)
            except BadValueError as error:
                return [*found, f": element {at}: {error}"]
            shown = display_step(step)
            if step in seen:
                found.append(f": duplicate entries for key {shown}")
            seen.add(step)
        found += [shown + problem for problem in _problems(item, kind.element)]
    return found

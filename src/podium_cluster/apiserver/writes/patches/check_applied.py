"""Checks an applied configuration against the schema: unknown fields, wrong types and repeated entries, as apply
words them.
"""

from __future__ import annotations

from typing import Any, Final

from podium_cluster.apiserver.errors import StatusError, bad_request, shown_json
from podium_cluster.apiserver.writes.patches.field_sets import display_step, field_step
from podium_cluster.apiserver.writes.patches.typed_values import BadValueError, list_step
from podium_cluster.apiserver.writes.patches.types import MergeType


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

"""Follows paths into an object, as printer columns use them: `.spec.replicas`,
`.status.conditions[?(@.type=="Ready")].status`, `.spec.ports[0].port`,
`.metadata.annotations['example\\.com/owner']`, `.spec.items[*].name`.

What is not there is no result, never an error.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from kubecel.strconv import parse_int64

Step = Callable[[Any], Iterable[Any]]

_FIELD: Final = re.compile(r"\.((?:\\.|[^.\[\]\\])+)")
_QUOTED: Final = re.compile(r"\[(['\"])((?:\\.|(?!\1)[^\\])*)\1\]")
_INDEX: Final = re.compile(r"\[(-?[0-9]+)\]")
_SLICE: Final = re.compile(r"\[(-?[0-9]*):(-?[0-9]*)(?::(-?[0-9]+))?\]")
_EVERY: Final = re.compile(r"\[\*\]|\.\*")
_FILTER: Final = re.compile(r"\[\?\(\s*@(?P<path>[^=!<>]*?)(?:(?P<sign>==|!=|<=|>=|<|>)(?P<value>.+?))?\)\]")
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


class JsonPathError(ValueError):
    """A path that cannot be read."""


class JsonPath:
    def __init__(self, text: str) -> None:
        self.steps = _steps(text.strip().removeprefix("$"))

    def find(self, obj: Any) -> list[Any]:
        """Every value the path leads to, in order."""
        found = [obj]
        for step in self.steps:
            found = [value for each in found for value in step(each)]
        return found


def _steps(text: str) -> list[Step]:
    steps: list[Step] = []
    position = 0
    while position < len(text):
        for form, make in _FORMS:
            match = form.match(text, position)
            if match is not None:
                steps.append(make(match))
                position = match.end()
                break
        else:
            raise JsonPathError(f'JSON path "{text}" cannot be read from "{text[position:]}" on')
    return steps


def _field(match: re.Match[str]) -> Step:
    name = re.sub(r"\\(.)", r"\1", match[match.lastindex or 0])
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _index(match: re.Match[str]) -> Step:
    index = parse_int64(match[1]) or 0
    return lambda value: value[index : index + 1 or None] if isinstance(value, list) else []


def _slice(match: re.Match[str]) -> Step:
    part = slice(*(parse_int64(text) if text else None for text in match.groups()))
    return lambda value: value[part] if isinstance(value, list) else []


def _every(_: re.Match[str]) -> Step:
    return lambda value: list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _filter(match: re.Match[str]) -> Step:
    path, sign = JsonPath(match["path"]), match["sign"]
    wanted = _literal(match["value"].strip()) if sign else None

    def holds(item: Any) -> bool:
        found = path.find(item)
        if not sign:
            return bool(found)
        try:
            return bool(found) and _COMPARE[sign](found[0], wanted)
        except TypeError:
            return False

    return lambda value: [item for item in value if holds(item)] if isinstance(value, list) else []


def _literal(text: str) -> Any:
    if text[:1] in "'\"" and text[-1:] == text[:1]:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise JsonPathError(
            f'JSON path compares with "{text}"; write a number, true, false or a text in quotes'
        ) from None


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...]] = (
    (_EVERY, _every),
    (_FIELD, _field),
    (_QUOTED, _field),
    (_INDEX, _index),
    (_SLICE, _slice),
    (_FILTER, _filter),
)

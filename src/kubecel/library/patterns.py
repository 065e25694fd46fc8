"""Implements find and findAll, and what `matches` does, on patterns in RE2 syntax."""

from typing import Final

from kubecel.re2 import CostError, PatternError, compile_finder, compile_pattern
from kubecel.values import CelError, Implementation, no_overload


def matches(text: object, pattern: object) -> bool:
    """Whether a pattern matches somewhere in a text."""
    if not isinstance(text, str):
        raise CelError("no such overload: matches")
    if not isinstance(pattern, str):
        raise no_overload()
    try:
        return compile_pattern(pattern).search(text)
    except PatternError as error:
        raise CelError(f"error parsing regexp: {error}") from None
    except CostError as error:
        raise CelError(str(error)) from None


def _find(text: str, pattern: str) -> str:
    try:
        found = compile_finder(pattern).find(text)
    except PatternError as error:
        raise CelError(f"Illegal regex: error parsing regexp: {error}") from None
    except CostError as error:
        raise CelError(str(error)) from None
    return text[found[0] : found[1]] if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    try:
        return compile_finder(pattern).find_all(text, most)
    except PatternError as error:
        raise CelError(f"Illegal regex: error parsing regexp: {error}") from None
    except CostError as error:
        raise CelError(str(error)) from None


FUNCTIONS: Final[dict[str, Implementation]] = {
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}

"""Implements the string library: positions and lengths count characters.

Also implements find and findAll, and what `matches` does, on patterns in RE2 syntax.
"""

from typing import Final

from kubecel.format_clauses import format_text
from kubecel.re2 import CostError, PatternError, compile_finder, compile_pattern
from kubecel.values import CelError, Implementation, no_overload

_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_ESCAPES: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)
_LOWER: Final = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})
_UPPER: Final = str.maketrans({chr(code + 32): chr(code) for code in range(65, 91)})


def _out_of_range(index: int) -> CelError:
    return CelError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    if len(text.encode()) < len(part.encode()):
        return -1
    return _last_index_from(text, part, len(text) - 1)


def _last_index_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    return text.replace(old, new, most if most >= 0 else -1)


def _split(text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if not separator:
        if most < 0 or most > len(text):
            return list(text)
        return [*text[: most - 1], text[most - 1 :]]
    return text.split(separator, most - 1 if most > 0 else -1)


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _join(elements: list[object], separator: str = "") -> str:
    for element in elements:
        if not isinstance(element, str):
            raise CelError(f"join: invalid input: {element}")
    return separator.join(str(element) for element in elements)


def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


FUNCTIONS: Final[dict[str, Implementation]] = {
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_from,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring_between,
    "string_trim": lambda text: text.strip(_SPACE),
    "string_format": format_text,
    "strings_quote": _quote,
    "list_join": _join,
    "list_join_string": _join,
}


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


PATTERN_FUNCTIONS: Final[dict[str, Implementation]] = {
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}

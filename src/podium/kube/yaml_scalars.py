"""Decides which YAML words are numbers, booleans or null, by the rules of the YAML reader inside Kubernetes.

PyYAML's own rules differ where it hurts: it reads `1:30` as 90 and `1e3` as a string, and does not know `y` and `n`.
Kubernetes turns YAML into JSON before it decodes, so there a whole number may also be written `16.0` or `1e3`. Dates,
`.inf` and `.nan` have no JSON form a field could take; they stay text, and so does a number too large for a float.
"""

import base64
import binascii
import re
from functools import lru_cache
from typing import Any, Final

import yaml

_TAG: Final = "tag:yaml.org,2002:"
MERGE_TAG: Final = f"{_TAG}merge"
MAP_TAG: Final = f"{_TAG}map"
LIST_TAG: Final = f"{_TAG}seq"
TEXT_TAG: Final = f"{_TAG}str"
_TRUE: Final = {form for word in ("y", "yes", "true", "on") for form in (word, word.capitalize(), word.upper())}
_FALSE: Final = {form for word in ("n", "no", "false", "off") for form in (word, word.capitalize(), word.upper())}
_NULL: Final = {"", "~", "null", "Null", "NULL"}
_INT: Final = re.compile(r"[-+]?(0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|[1-9][0-9_]*|0)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_MAY_BE_A_NUMBER: Final = frozenset("-+.0123456789")
_LONGEST_INTEGER: Final = 80  # -0b and 64 digits, with room for underscores


@lru_cache(maxsize=4096)
def implicit_tag(word: str) -> str:
    """The tag of a word without quotes and without a tag of its own."""
    if word in _NULL:
        return f"{_TAG}null"
    if word in _TRUE or word in _FALSE:
        return f"{_TAG}bool"
    if word == "<<":
        return MERGE_TAG
    if word[0] in _MAY_BE_A_NUMBER:
        if _INT.fullmatch(word) and _integer(word) is not None:
            return f"{_TAG}int"
        if _FLOAT.fullmatch(word) and _float(word) is not None:
            return f"{_TAG}float"
    return TEXT_TAG


def is_merge_key(node: yaml.Node) -> bool:
    """Whether a key is YAML's `<<`, which copies another mapping's fields in."""
    return bool(node.tag == MERGE_TAG)


def scalar_value(node: yaml.ScalarNode, json: bool = False) -> Any:
    """The value of one word, in YAML or in JSON; a ValueError says why its explicit tag does not fit it."""
    text: str = node.value
    match node.tag.removeprefix(_TAG):
        case "null":
            return None
        case "bool":
            if text not in _TRUE | _FALSE:
                raise ValueError(f"cannot decode `{text}` as a !!bool")
            return text in _TRUE
        case "int":
            number = _integer(text) if _INT.fullmatch(text) else None
            if number is None:
                raise ValueError(f"cannot decode `{text[:80]}` as a !!int")
            return number
        case "float":
            fraction = _float(text) if _FLOAT.fullmatch(text) else None
            if fraction is None:
                raise ValueError(f"cannot decode `{text[:80]}` as a !!float")
            return int(fraction) if fraction.is_integer() and abs(fraction) < 1e21 and not json else fraction
        case "binary":
            return _binary(text)
        case _:
            return text


def key_text(node: yaml.Node) -> str:
    """A field's name: `true` for `on:` and `y:`, `8` for `010:`, as Kubernetes makes of them; ValueError for a map."""
    if not isinstance(node, yaml.ScalarNode):
        raise ValueError("a field name must be a plain word")
    value = scalar_value(node)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(node.value) if value is None or isinstance(value, str) else str(value)


def _integer(text: str) -> int | None:
    """A whole number of at most 64 bits."""
    text = text.replace("_", "")
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.removeprefix("+"))
    if len(digits) > _LONGEST_INTEGER:
        return None
    try:  # 010 is eight, as in Go and in YAML 1.1
        number = sign * int(digits, 8 if digits[0] == "0" and digits.isdigit() else 0)
    except ValueError:
        return None
    return number if -(2**63) <= number < 2**64 else None


def _float(text: str) -> float | None:
    number = float(text.replace("_", ""))
    return number if abs(number) != float("inf") else None


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, ValueError):
        raise ValueError("!!binary does not hold text in base64") from None

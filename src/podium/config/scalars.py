"""Decides which YAML words are numbers, booleans or null, by the rules of the YAML reader inside kube-scheduler.

PyYAML's own rules differ where it hurts: it reads `1:30` as 90 and `1e3` as a string, and does not know `y` and `n`.
kube-scheduler turns YAML into JSON before it decodes, so there a whole number may also be written `16.0` or `1e3`.
Dates, `.inf` and `.nan` have no JSON form a field here could take; they stay text.
"""

import re
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_TRUE = {form for word in ("y", "yes", "true", "on") for form in (word, word.capitalize(), word.upper())}
_FALSE = {form for word in ("n", "no", "false", "off") for form in (word, word.capitalize(), word.upper())}
_INT = re.compile(r"[-+]?(0[bB][01_]+|0[oO]?[0-7_]+|0[xX][0-9a-fA-F_]+|[1-9][0-9_]*|0)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")


class ConfigLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's C loader with the words above instead of its own."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  PyYAML's own attribute


def _words(words: set[str]) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(sorted(words))})$")


ConfigLoader.add_implicit_resolver(f"{_TAG}null", re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
ConfigLoader.add_implicit_resolver(f"{_TAG}bool", _words(_TRUE | _FALSE), list("yYnNtTfFoO"))
ConfigLoader.add_implicit_resolver(f"{_TAG}int", re.compile(_INT.pattern + "$"), list("-+0123456789"))
ConfigLoader.add_implicit_resolver(f"{_TAG}float", re.compile(_FLOAT.pattern + "$"), list("-+0123456789."))
ConfigLoader.add_implicit_resolver(f"{_TAG}merge", re.compile("<<$"), ["<"])


def is_merge_key(node: yaml.Node) -> bool:
    """Whether a key is YAML's `<<`, which copies another mapping's fields in."""
    return bool(node.tag == f"{_TAG}merge")


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
            if not _INT.fullmatch(text):
                raise ValueError(f"cannot decode `{text}` as a !!int")
            return _integer(text.replace("_", ""))
        case "float":
            if not _FLOAT.fullmatch(text):
                raise ValueError(f"cannot decode `{text}` as a !!float")
            number = float(text.replace("_", ""))
            return int(number) if number.is_integer() and abs(number) < 1e21 and not json else number
        case _:
            return text


def _integer(text: str) -> int:
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.removeprefix("+"))
    if digits[0] == "0" and digits.isdigit():
        return sign * int(digits, 8)  # 010 is eight, as in Go and in YAML 1.1
    return sign * int(digits, 0)

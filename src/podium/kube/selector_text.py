"""Parses label selectors as they are written for kubectl and in URLs: `app=web,tier in (a, b),!old`.

The grammar and the complaints are the API's.
"""

import re
from functools import lru_cache
from typing import Final

from kubecel.names import label_value_errors, parse_int64, qualified_name_errors
from podium.kube.selector import (
    DOES_NOT_EXIST,
    EVERYTHING,
    EXISTS,
    GT,
    IN,
    LT,
    NOT_IN,
    Requirement,
    Selector,
    SelectorError,
)

_TOKEN: Final = re.compile(r"==|!=|[=!(),<>]|[^\s=!(),<>]+")
"""A word; what stands between tokens is white space, which no alternative begins with, so that it is read once."""
_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_COMPARISONS: Final = {"=": IN, "==": IN, "!=": NOT_IN, ">": GT, "<": LT, "gt": GT, "lt": LT}
_END: Final = ""


@lru_cache(maxsize=1024)
def parse_selector(text: str) -> Selector:
    """The selector; SelectorError where the text is not one."""
    parser = _SelectorParser(_TOKEN.findall(text))
    requirements = parser.requirements()
    return EVERYTHING.and_also(requirements) if requirements else EVERYTHING


class _SelectorParser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            word = self._peek()
            if word == _END:
                return found
            if word != "!" and word in _SYMBOLS:
                raise SelectorError(f"found '{word}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            word = self._next()
            if word == _END:
                return found
            if word != ",":
                raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
            following = self._peek()
            if following != "!" and (following == _END or following in _SYMBOLS):
                raise SelectorError(f"found '{following}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._next()
        if key == _END or key in _SYMBOLS:
            raise _unparsable(f"found '{key}', expected: identifier")
        if errors := qualified_name_errors(key):
            raise _unparsable(f'<nil>: Invalid value: "{key}": {"; ".join(errors)}')
        if absent:
            return Requirement(key, DOES_NOT_EXIST)
        if self._peek() in (_END, ","):
            return Requirement(key, EXISTS)
        operator = self._next()
        if operator in ("in", "notin"):
            return _checked(key, IN if operator == "in" else NOT_IN, self._values())
        if operator not in _COMPARISONS:
            raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        return _checked(key, _COMPARISONS[operator], (self._value(),))

    def _value(self) -> str:
        """What stands after a comparison; nothing there is the empty value."""
        if self._peek() in (_END, ","):
            return ""
        value = self._next()
        if value in _SYMBOLS:
            raise _unparsable(f"found '{value}', expected: identifier")
        return value

    def _values(self) -> tuple[str, ...]:
        opening = self._next()
        if opening != "(":
            raise _unparsable(f"found '{opening}' expected: '('")
        values: list[str] = []
        expects_value = True
        while True:
            word = self._next()
            if word == ")":
                if expects_value:
                    values.append("")
                return tuple(values)
            if word == ",":
                if expects_value:
                    values.append("")
                expects_value = True
            elif word == _END or word in _SYMBOLS or not expects_value:
                raise _unparsable(f"found '{word}', expected: ',', ')' or identifier")
            else:
                values.append(word)
                expects_value = False

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _next(self) -> str:
        word = self._peek()
        self._at += 1
        return word


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    for index, value in enumerate(values):
        if operator in (GT, LT) and parse_int64(value) is None:
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _unparsable(f'values[{index}]: Invalid value: "{value}": {why}')
        if errors := label_value_errors(value):
            raise _unparsable(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(errors)}')
    return Requirement(key, operator, tuple(sorted(set(values))))


def _unparsable(why: str) -> SelectorError:
    return SelectorError(f"unable to parse requirement: {why}")

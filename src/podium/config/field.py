"""Says where a value stands in a configuration, and what is wrong with it, in kube-scheduler's words.

People who move a file from kube-scheduler to Podium grep for the messages they know, so a rejected field reads as
kube-scheduler prints it:

    extenders[0].weight: Invalid value: -1: must have a positive weight applied to it

A path is the steps from the root: names are joined by dots, positions in a list stand in brackets. Plugins use this
module to check their own arguments: a `validate(self, path)` method on the Args struct yields `FieldError`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from kubecel.strconv import quoted as go_quoted
from podium.config.durations import Duration
from podium.config.secrets import shown_at

Step = str | int


@dataclass(frozen=True, slots=True)
class FieldPath:
    """The steps from the root of a document to one value; `str()` gives `profiles[0].plugins.score`."""

    steps: tuple[Step, ...] = ()

    def child(self, *names: str) -> FieldPath:
        return FieldPath((*self.steps, *names))

    def index(self, position: int) -> FieldPath:
        return FieldPath((*self.steps, position))

    def __str__(self) -> str:
        parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return "".join(parts).removeprefix(".")


class Wrong(Enum):
    """The kinds of wrong, as they are printed."""

    INVALID = "Invalid value"
    REQUIRED = "Required value"
    DUPLICATE = "Duplicate value"
    NOT_SUPPORTED = "Unsupported value"
    FORBIDDEN = "Forbidden"


class FieldError(NamedTuple):
    """One field that cannot be accepted. `body` is the message without the path; `str()` has both."""

    path: FieldPath
    body: str

    @classmethod
    def invalid(cls, path: FieldPath, value: Any, detail: str) -> FieldError:
        return cls(path, _body(Wrong.INVALID, quoted(shown_at(path.steps, value)), detail))

    @classmethod
    def required(cls, path: FieldPath, detail: str = "") -> FieldError:
        return cls(path, _body(Wrong.REQUIRED, detail))

    @classmethod
    def duplicate(cls, path: FieldPath, value: Any) -> FieldError:
        return cls(path, _body(Wrong.DUPLICATE, quoted(shown_at(path.steps, value))))

    @classmethod
    def not_supported(cls, path: FieldPath, value: Any, supported: Sequence[str]) -> FieldError:
        listed = "supported values: " + ", ".join(map(quoted, supported)) if supported else ""
        return cls(path, _body(Wrong.NOT_SUPPORTED, quoted(shown_at(path.steps, value)), listed))

    @classmethod
    def forbidden(cls, path: FieldPath, detail: str) -> FieldError:
        return cls(path, _body(Wrong.FORBIDDEN, detail))

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


def aggregate(messages: Iterable[str]) -> str:
    """Several messages as one: repeated ones once, a single one bare, more of them as `[first, second]`."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def quoted(value: Any) -> str:
    """A value as kube-scheduler prints it in a message: numbers bare, strings in quotes, everything else as JSON."""
    match value:
        case bool():
            return "true" if value else "false"
        case Duration():
            return f'"{value}"'
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
        case str():
            return go_quoted(value)
        case _:
            return msgspec.json.encode(value, enc_hook=str).decode()


def _body(wrong: Wrong, *parts: str) -> str:
    return ": ".join((wrong.value, *filter(None, parts)))

"""Collects what is wrong with a configuration file, all of it at once, each with its position.

kube-scheduler works in stages (read the file, check the values, build the profiles) and stops after the first stage
that fails. A reader who is mending a file wants everything in one go, so the problems of all stages are collected;
`ConfigError.kube_text` is the single message kube-scheduler would have ended with (where a value has the wrong type,
in our words instead of Go's).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

import msgspec

from podium.config.field import FieldError, FieldPath, aggregate
from podium.config.positions import ConfigDocument
from podium.errors import UserError

STRICT = "strict decoding error: "
REPEATED = "yaml: unmarshal errors: "


class ConfigProblem(msgspec.Struct, frozen=True):
    """One mistake, or one warning. `path` is empty when the file as a whole is meant; `hint` says what to write."""

    file: str
    line: int
    path: str
    message: str
    hint: str = ""
    column: int = 1

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        field_name = f"{self.path}: " if self.path else ""
        return f"{where}{field_name}{self.message}" + (f" ({self.hint})" if self.hint else "")


class ConfigError(UserError):
    """The file cannot be used. `problems` has every mistake found, in kube-scheduler's order of checking."""

    def __init__(self, problems: Iterable[ConfigProblem], kube_text: str = "") -> None:
        self.problems = list(problems)
        self.kube_text = kube_text
        super().__init__("\n".join(map(str, self.problems)))


class Stage(IntEnum):
    """When kube-scheduler would have noticed. It reports only the earliest stage that failed."""

    UNREADABLE = 0
    STRICT = 1
    INVALID = 2
    UNBUILDABLE = 3


@dataclass
class Findings:
    """Collects problems and warnings while one file is read."""

    source: str
    document: ConfigDocument = field(default_factory=ConfigDocument)
    problems: list[ConfigProblem] = field(default_factory=list)
    warnings: list[ConfigProblem] = field(default_factory=list)
    _kube: list[tuple[Stage, str, str]] = field(default_factory=list)  # stage, what comes before, the message

    def unreadable(self, path: FieldPath, message: str, hint: str = "") -> None:
        """A value that cannot be decoded at all."""
        self._add(Stage.UNREADABLE, path, message, hint, kube=("", message))

    def strict(self, path: FieldPath, message: str, hint: str = "", prefix: str = "") -> None:
        """An unknown field, or one that is there twice. `prefix` leads from the file to arguments inside it."""
        self._add(Stage.STRICT, path, f"{prefix}{STRICT}{message}", hint, kube=(prefix, message))

    def invalid(self, error: FieldError, hint: str = "", message: str = "") -> None:
        """`message` is said instead of kube-scheduler's words, which `kube_text` has all the same."""
        self._add(Stage.INVALID, error.path, message or error.body, hint, kube=("", str(error)))

    def unbuildable(self, path: FieldPath, message: str, hint: str = "", prefix: str = "") -> None:
        """A mistake that shows when extenders and profiles are built; not repeated where one was reported before."""
        if not any(problem.path == str(path) for problem in self.problems):
            self._add(Stage.UNBUILDABLE, path, message, hint, kube=(prefix, message))

    def uninitializable(self, path: FieldPath, plugin: str, message: str, prefix: str) -> None:
        """Arguments a plugin refuses when it is built. kube-scheduler gives all of them in one message."""
        initializing = f'initializing plugin "{plugin}": '
        kube = (prefix + initializing, message)
        self._add(Stage.UNBUILDABLE, path, initializing + message, "", kube)

    def warn(self, path: FieldPath, message: str, hint: str = "") -> None:
        self.warnings.append(self._problem(path, message, hint))

    def found_under(self, path: FieldPath, up_to: Stage = Stage.UNBUILDABLE) -> bool:
        """Whether a problem was already found at a field or inside it, in one of the stages up to the given one."""
        at, inside = str(path), (f"{path}.", f"{path}[")
        found = zip(self.problems, self._kube, strict=True)
        return any(stage <= up_to and (p.path == at or p.path.startswith(inside)) for p, (stage, _, _) in found)

    def raise_if_any(self) -> None:
        if self.problems:
            raise ConfigError(self.problems, self._kube_text())

    def _add(self, stage: Stage, path: FieldPath, message: str, hint: str, kube: tuple[str, str]) -> None:
        self.problems.append(self._problem(path, message, hint))
        self._kube.append((stage, *kube))

    def _problem(self, path: FieldPath, message: str, hint: str) -> ConfigProblem:
        position = self.document.position(path)
        return ConfigProblem(self.source, position.line, str(path), message, hint, position.column)

    def _kube_text(self) -> str:
        earliest = min(stage for stage, _, _ in self._kube)
        found = [(prefix, message) for stage, prefix, message in self._kube if stage == earliest]
        if earliest is Stage.STRICT:
            return _strict_text(found)
        if earliest is Stage.INVALID:
            return aggregate(message for _, message in found)
        first, message = found[0]
        if "initializing plugin" in first:
            message = aggregate(message for prefix, message in found if prefix == first)
        return first + message


def _strict_text(found: list[tuple[str, str]]) -> str:
    """Strict errors come as one list, in which the errors of one plugin's arguments are again one list."""
    by_prefix: dict[str, list[str]] = {}
    for prefix, message in found:
        by_prefix.setdefault(prefix.removeprefix(STRICT), []).append(message)
    own = by_prefix.pop("", [])
    repeated = [message.removeprefix(REPEATED) for message in own if message.startswith(REPEATED)]
    if repeated:  # the YAML reader's errors are one error of several lines, and come first
        lines = "".join(f"\n  {message}" for message in repeated)
        own = [REPEATED.strip() + lines, *(message for message in own if not message.startswith(REPEATED))]
    nested = [f"{prefix}{STRICT}{', '.join(messages)}" for prefix, messages in by_prefix.items()]
    return STRICT + ", ".join(own + nested)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint naming the closest known word, or nothing when none is close."""
    by_lower_case = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower_case, n=1)
    return f"did you mean {by_lower_case[close[0]]}?" if close else ""

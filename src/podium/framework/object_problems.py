"""Reports what is wrong with the API objects that plugins read: once for each object, until that changes.

A plugin says after each reading of an object what is wrong with it, or that nothing is. What is new goes to the log and
to the listener: the live scheduler writes an event on the object. Problems stay open until they are put right, so that
a process that begins to lead can say what is wrong by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from podium.kube.meta import ObjectReference


class ObjectProblem(NamedTuple):
    """What is wrong with an object: a reason in one word, as events have it, and a note in words."""

    regarding: ObjectReference
    reason: str
    note: str

    def __str__(self) -> str:
        space = f"{self.regarding.namespace}/" if self.regarding.namespace else ""
        return f"{self.regarding.kind} {space}{self.regarding.name}: {self.note}"


class ObjectProblems:
    """The problems that are open now; `listener` hears of each new one."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._open: dict[tuple[str, str, str], ObjectProblem] = {}
        self.listener: Callable[[ObjectProblem], None] = lambda _problem: None

    def __iter__(self) -> Iterator[ObjectProblem]:
        return iter(list(self._open.values()))

    def set(self, regarding: ObjectReference, reason: str, note: str) -> None:
        """Note what is wrong with an object."""
        key, problem = _key(regarding), ObjectProblem(regarding, reason, note)
        known = self._open.get(key)
        self._open[key] = problem
        if known is None or (known.regarding.uid, known.note) != (regarding.uid, note):
            self._say(problem)

    def clear(self, regarding: ObjectReference) -> None:
        """Note that nothing is wrong with an object, or that it is gone."""
        self._open.pop(_key(regarding), None)

    def mention(self, regarding: ObjectReference, reason: str, note: str) -> None:
        """Report something that is over, so that it cannot be put right."""
        self._say(ObjectProblem(regarding, reason, note))

    def _say(self, problem: ObjectProblem) -> None:
        self._report(str(problem))
        self.listener(problem)


def custom_reference(api_version: str, kind: str, key: str, item: Any) -> ObjectReference:
    """A reference to a custom object by its "namespace/name" and its data, however odd that is."""
    namespace, _, name = key.rpartition("/")
    metadata = item.get("metadata") if isinstance(item, dict) else None
    found = metadata if isinstance(metadata, dict) else {}
    uid, version = (each if isinstance(each := found.get(field), str) else "" for field in ("uid", "resourceVersion"))
    return ObjectReference(
        api_version=api_version, kind=kind, namespace=namespace, name=name, uid=uid, resource_version=version
    )


def _key(regarding: ObjectReference) -> tuple[str, str, str]:
    return regarding.kind, regarding.namespace, regarding.name

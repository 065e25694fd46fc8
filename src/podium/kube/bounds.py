"""Bounds how large, how deep and how slow a document from outside may be.

A few hundred bytes of YAML can stand for billions of values, and a body can be as large as memory. Every reader of
what comes from outside takes one of the bounds below; what exceeds them is a DocumentError like any other fault.
"""

from typing import Final, NamedTuple

import msgspec

from podium.kube.json_depth import MAX_DEPTH

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not what they should be: wrong, not UTF-8, or nested too deeply."""


MOST_VALUES: Final = 8_000_000
"""Values in an answer from outside, counted by its commas: two bytes of JSON can become sixty of memory. A list of
50,000 pods has fewer."""


class Bounds(NamedTuple):
    """What a document may cost: bytes as written and after aliases are expanded, values, levels, CPU time for YAML."""

    size: int
    values: int
    seconds: float
    depth: int = MAX_DEPTH


FILE: Final = Bounds(size=1 << 30, values=50_000_000, seconds=600.0)
"""A file that the user names: a dump of a large cluster is hundreds of megabytes."""

BODY: Final = Bounds(size=3 << 20, values=1_000_000, seconds=5.0)
"""The body of a request: kube-apiserver's own limit is 3 MiB."""

SETTINGS: Final = Bounds(size=3 << 20, values=100_000, seconds=5.0)
"""A configuration or a kubeconfig: a few hundred values."""


class DocumentError(ValueError):
    """A text that is no document, or one out of bounds: what is wrong, where, and in which language ("" for bounds)."""

    def __init__(self, problem: str, line: int = 0, *, language: str = "", source: str = "") -> None:
        self.problem, self.line, self.language, self.source = problem, line, language, source
        where = "".join(f"{part}:" for part in (source, line) if part)
        broken = f"the {language} is broken: " if language else ""
        super().__init__(f"{where}{' ' if where else ''}{broken}{problem}")

    def of(self, source: str) -> "DocumentError":
        """The same fault, naming the file."""
        return DocumentError(self.problem, self.line, language=self.language, source=source)


def too_large(bounds: Bounds) -> DocumentError:
    """The fault of a text that is larger than it may be."""
    return DocumentError(f"larger than {bounds.size >> 20} MiB")


def too_deep(bounds: Bounds, line: int = 0) -> DocumentError:
    """The fault of a text that is nested deeper than it may be."""
    return DocumentError(f"nested more than {bounds.depth} levels deep", line)

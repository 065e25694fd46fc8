"""Bounds how large, how deep and how slow a document from outside may be.

A few hundred bytes of YAML can stand for billions of values, and a body can be as large as memory. Every reader of
what comes from outside takes one of the bounds below; what exceeds them is a DocumentError like any other fault.
"""

from typing import Final, NamedTuple

import msgspec
import numpy as np

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not what they should be: wrong, not UTF-8, or nested too deeply."""


MOST_VALUES: Final = 8_000_000
"""Values in an answer from outside, counted by its commas: two bytes of JSON can become sixty of memory. A list of
50,000 pods has fewer."""
MAX_DEPTH: Final = 100
"""Levels of maps and lists in a document. Pods have about ten, definitions of large custom kinds about sixty."""

_NOT_STRUCTURE: Final = bytes(sorted(set(range(256)) - set(b'[]{}"')))
_QUOTE: Final = ord('"')


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


def nested_too_deeply(text: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether maps and lists in a JSON text go deeper than the limit, up to where it stops being JSON.

    It reads the raw bytes, before a decoder sees them. Decoders recurse, and so does most of what is done with a
    decoded value; how deep they may go is a matter of the interpreter's version and of the thread's stack. A text with
    no more than MAX_DEPTH opening brackets in all cannot be nested deeper, which settles most single objects in a
    fraction of a microsecond. For the others the strings are taken out and the brackets counted as arrays: 1 to 6 ns
    per byte.

    msgspec itself raises RecursionError at about 1,000 levels. Typed decoding of large messages (lists, what
    kube-scheduler sends to an extender) relies on that, since the values come out no deeper than their types.

    >>> nested_too_deeply(b"[" * 101), nested_too_deeply(b'["' + b"[" * 101 + b'"]')
    (True, False)
    """
    if text.count(b"{") + text.count(b"[") <= limit:
        return False
    if b"\\" in text:  # without escapes, every quotation mark begins or ends a string
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    structure = np.frombuffer(text.translate(None, _NOT_STRUCTURE).replace(b'""', b""), np.uint8)
    quotes = structure == _QUOTE
    outside_strings = ~(np.bitwise_xor.accumulate(quotes) | quotes)
    # The codes of [ and { have the bit 2, those of ] and } do not: +1 for each that opens, -1 for each that closes.
    steps = (structure[outside_strings].view(np.int8) & 2) - 1
    return steps.size > 0 and int(np.cumsum(steps, dtype=np.int32).max()) > limit

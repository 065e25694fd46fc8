"""Refuses JSON that is nested too deeply, from its raw bytes, before a decoder sees it.

Decoders recurse, and so does most of what is done with a decoded value; how deep they may go is a matter of the
interpreter's version and of the thread's stack. A text with no more than MAX_DEPTH opening brackets in all cannot be
nested deeper, which settles most single objects in a fraction of a microsecond. For the others the strings are taken
out and the brackets counted as arrays: 1 to 6 ns per byte.

msgspec itself raises RecursionError at about 1,000 levels. Typed decoding of large messages (lists, what kube-scheduler
sends to an extender) relies on that, since the values come out no deeper than their types.
"""

from typing import Final

import numpy as np

MAX_DEPTH: Final = 100
"""Levels of maps and lists in a document. Pods have about ten, definitions of large custom kinds about sixty."""

_NOT_STRUCTURE: Final = bytes(sorted(set(range(256)) - set(b'[]{}"')))
_QUOTE: Final = ord('"')


def nested_too_deeply(text: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether maps and lists in a JSON text go deeper than the limit, up to where it stops being JSON.

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

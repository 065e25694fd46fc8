"""Finds in a scheduling failure's message the reason that kept the most nodes away."""

from __future__ import annotations

import re
from functools import lru_cache

_NODES = re.compile(r"^0/\d+ nodes are available: (.*)$", re.DOTALL)
_COUNTED = re.compile(r"(\d+) (.+)")
NO_REASON = "not tried yet"


@lru_cache(maxsize=4096)
def main_reason(message: str) -> str:
    """
    >>> main_reason("0/5 nodes are available: 2 Insufficient memory, 3 Insufficient cpu. No preemption victims found")
    'Insufficient cpu'
    """
    found = _NODES.match(message)
    if found is None:
        return message or NO_REASON
    text = found[1].split(". ", 1)[0].rstrip(".")
    counted = [_COUNTED.fullmatch(part) for part in text.split(", ")]
    reasons = sorted((-int(each[1]), each[2]) for each in counted if each is not None)
    return reasons[0][1] if reasons else text

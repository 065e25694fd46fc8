"""Hashes a pod template: the hash is part of names and labels, so that the pods of each version can be distinguished.

Of two templates that say the same the hash is the same. It is not the number that kube-controller-manager computes,
which depends on how Go prints its structs. Letters that could form words are left out, as everywhere in such names.
"""

from __future__ import annotations

from typing import Any

import msgspec

_SAFE = "bcdfghjklmnpqrstvwxz2456789"

_encoder = msgspec.json.Encoder(order="deterministic")


def template_hash(template: Any, collisions: int | None = None) -> str:
    value = _fnv32a(_encoder.encode(template) + (b"" if collisions is None else collisions.to_bytes(8, "little")))
    return "".join(_SAFE[ord(digit) % len(_SAFE)] for digit in str(value))


def _fnv32a(data: bytes) -> int:
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value

"""Computes the fingerprint of the pods on a node, by which a report says which pods it covers.

h(pod) = XXH64(name, seed = XXH64(namespace))
"pfp0v001" + XXH64 over the sorted h of all pods, 8 bytes each, little-endian, as 16 hexadecimal digits
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from podium.kube import Pod


def fingerprint(pods: Iterable[Pod]) -> str:
    """The fingerprint of a set of pods, whatever their order.

    >>> fingerprint([])
    'pfp0v001ef46db3751d8e999'
    """
    hashes = sorted(_pod_hash(pod.metadata.namespace, pod.metadata.name) for pod in pods)
    return f"pfp0v001{xxh64(b''.join(each.to_bytes(8, 'little') for each in hashes)):016x}"


@lru_cache(maxsize=1 << 17)
def _pod_hash(namespace: str, name: str) -> int:
    return xxh64(name.encode(), xxh64(namespace.encode()))


_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def xxh64(data: bytes, seed: int = 0) -> int:
    """XXH64, an unsigned 64-bit hash, by which agents and schedulers agree on which pods and containers they speak of.

    >>> hex(xxh64(b"")), hex(xxh64(b"abc"))
    ('0xef46db3751d8e999', '0x44bc2cf5ad770999')
    """
    size, at = len(data), 0
    if size >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while at <= size - 32:
            for lane in range(4):
                lanes[lane] = _round(lanes[lane], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        digest = sum(_rotate(value, by) for value, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for value in lanes:
            digest = ((digest ^ _round(0, value)) * _P1 + _P4) & _MASK
    else:
        digest = (seed + _P5) & _MASK
    digest = (digest + size) & _MASK
    while at + 8 <= size:
        digest ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        digest = (_rotate(digest, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= size:
        digest ^= int.from_bytes(data[at : at + 4], "little") * _P1 & _MASK
        digest = (_rotate(digest, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        digest = _rotate(digest ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    digest = (digest ^ digest >> 33) * _P2 & _MASK
    digest = (digest ^ digest >> 29) * _P3 & _MASK
    return digest ^ digest >> 32


def _round(lane: int, value: int) -> int:
    return _rotate((lane + value * _P2) & _MASK, 31) * _P1 & _MASK


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) & _MASK

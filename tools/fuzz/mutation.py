"""Makes hostile inputs: good ones with something wrong, and bytes of no origin."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

LONGEST = 1 << 20

_REPEATED = ("[", "{", '{"a":', "- ", "? ", "a: ", "[[]", '"', "\\", "'", "*", "9")
TOKENS = (
    *(text * count for text in _REPEATED for count in (1, 40, 3000)),
    *("&a ", "*a", "<<: *a", "---\n", "...\n", "%TAG ! x\n", "!!binary ", "!!int ", "|\n", ">-\n", "\t", "\r\n", "\n"),
    *("null", "true", "NaN", "-Infinity", "1e999", "-0", "0x", "1e-400", "1_000", "12:30", ".5", "9" * 400, "1" * 5000),
    *("$patch", "$retainKeys", "$setElementOrder/containers", "replace", "delete", "/-", "/~1", "~0"),
    *("100m", "1Ki", "1e3Ei", "-1", "+1n", "0.0000000001", "1h2m", "-1us", "!=", " notin (", "in()", ",", "=="),
    *("\x00", "\x1b[31m", "\u202e", "\ufeff", "\ud7ff", "\U0001f40b", "é" * 300, "../../", "%2e%2e%2f", "%00", "%"),
    *("HTTP/1.1", "\r\n\r\n", "Content-Length: -1\r\n", "Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\n"),
)
BYTES = (
    b"\xff",
    b"\xfe\xff",
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\x80",
    b"k8s\x00",
    b"\x0a\x00",
    b"\x08\xff\xff\xff\xff\x01",
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**31, 2**63, -(2**63) - 1, 10**30, 1.5, -0.0, 1e308),
    *("", "a", "1", "1x", "\x00", "é" * 300, "x" * 70_000, "2026-01-31T12:00:00Z", "9999999-01-01", "100m", "-5Gi"),
    *([], [None], [[]], ["a"] * 3000, {}, {"": None}, {"a": {"b": []}}, {str(n): n for n in range(300)}),
    *({"$patch": "delete"}, {"$patch": 5}, {"matchLabels": {"a": None}}),
)


def mutated(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """A seed with a few things wrong."""
    text = rng.choice(seeds) if seeds else b""
    if rng.random() < 0.5:
        text = _with_another_value(rng, text)
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(200))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4, 12))):
        text = rng.choice(_STEPS)(rng, text, seeds)[:LONGEST]
    return text


def _at(rng: Random, text: bytes) -> tuple[int, int]:
    start = rng.randrange(len(text) + 1)
    return start, min(len(text), start + rng.choice((1, 2, 5, 20, 200)))


def _insert(rng: Random, text: bytes, _seeds: Sequence[bytes]) -> bytes:
    start, _ = _at(rng, text)
    token = rng.choice(BYTES) if rng.random() < 0.2 else rng.choice(TOKENS).encode("utf-8", "surrogatepass")
    return text[:start] + token + text[start:]


def _replace(rng: Random, text: bytes, seeds: Sequence[bytes]) -> bytes:
    start, end = _at(rng, text)
    return _insert(rng, text[:start] + text[end:], seeds)


def _delete(rng: Random, text: bytes, _seeds: Sequence[bytes]) -> bytes:
    start, end = _at(rng, text)
    return text[:start] + text[end:]


def _cut(rng: Random, text: bytes, _seeds: Sequence[bytes]) -> bytes:
    start, _ = _at(rng, text)
    return text[:start] if rng.random() < 0.7 else text[start:]


def _repeat(rng: Random, text: bytes, _seeds: Sequence[bytes]) -> bytes:
    start, end = _at(rng, text)
    return text[:end] + text[start:end] * rng.choice((1, 1, 10, 500)) + text[end:]


def _splice(rng: Random, text: bytes, seeds: Sequence[bytes]) -> bytes:
    other = rng.choice(seeds) if seeds else text
    return text[: _at(rng, text)[0]] + other[_at(rng, other)[0] :]


def _flip(rng: Random, text: bytes, _seeds: Sequence[bytes]) -> bytes:
    if not text:
        return text
    changed = bytearray(text)
    changed[rng.randrange(len(text))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _overlong(rng: Random, text: bytes, _seeds: Sequence[bytes]) -> bytes:
    """A byte as a number of protobuf that takes more bytes than it needs; readers differ in what they make of it."""
    if not text:
        return text
    at = rng.randrange(len(text))
    return text[:at] + bytes([text[at] | 0x80]) + b"\x80" * rng.randrange(9) + b"\x00" + text[at + 1 :]


_STEPS: tuple[Callable[[Random, bytes, Sequence[bytes]], bytes], ...] = (
    _insert,
    _insert,
    _replace,
    _replace,
    _delete,
    _cut,
    _repeat,
    _splice,
    _flip,
    _overlong,
)


def _with_another_value(rng: Random, text: bytes) -> bytes:
    """Where the text is JSON: the same with one value, however deep, replaced, left out or given another name."""
    try:
        root: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    at = root
    for _ in range(rng.randrange(8)):
        inner = list(at.values()) if isinstance(at, dict) else at if isinstance(at, list) else []
        containers = [each for each in inner if isinstance(each, dict | list) and each]
        if not containers:
            break
        at = rng.choice(containers)
    if isinstance(at, dict) and at:
        key = rng.choice(list(at))
        value = at.pop(key)
        action = rng.randrange(4)
        if action < 2:
            at[key] = rng.choice(VALUES)
        elif action == 2:
            at[rng.choice((key.upper(), key + "s", "", "a/b", "metadata", "kind"))] = value
    elif isinstance(at, list) and at:
        at[rng.randrange(len(at))] = rng.choice(VALUES)
    else:
        root = rng.choice(VALUES)
    return json.dumps(root).encode("utf-8", "surrogatepass")

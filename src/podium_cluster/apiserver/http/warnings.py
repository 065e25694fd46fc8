"""Writes an answer's warnings as Warning headers, within bounds.

As kube-apiserver: each warning once, 4,096 characters in all; when that is not enough, each is cut to 256. Many HTTP
clients read at most 100 headers, so the last one holds what is over as a list, which the format allows.
"""

from collections.abc import Iterable
from typing import Final

TOTAL: Final = 4096
LONGEST_WHEN_CUT: Final = 256
MOST_HEADERS: Final = 64


def warning_headers(warnings: Iterable[str]) -> list[str]:
    """The values of the Warning headers.

    >>> warning_headers(['unknown field "a"'])
    ['299 - "unknown field \\\\"a\\\\""']
    """
    values = [f'299 - "{_quoted(warning)}"' for warning in _bounded(list(dict.fromkeys(filter(None, warnings))))]
    if len(values) <= MOST_HEADERS:
        return values
    return [*values[: MOST_HEADERS - 1], ", ".join(values[MOST_HEADERS - 1 :])]


def _bounded(warnings: list[str]) -> list[str]:
    if sum(map(len, warnings)) <= TOTAL:
        return warnings
    sent: list[str] = []
    size = 0
    for warning in warnings:
        if size >= TOTAL:
            break
        sent.append(warning[:LONGEST_WHEN_CUT])
        size += len(sent[-1])
    return sent


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(character if character.isprintable() else " " for character in escaped)

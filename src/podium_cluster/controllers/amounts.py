"""Reads a number of pods that is written as a number or as a percentage of others: 1, "25%"."""

from __future__ import annotations


def scaled(value: int | str, total: int, *, round_up: bool) -> int:
    """The number meant by `value` out of `total`.

    >>> scaled("25%", 10, round_up=True), scaled("25%", 10, round_up=False), scaled(3, 10, round_up=True)
    (3, 2, 3)
    """
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%")) * total
    return -(-percent // 100) if round_up else percent // 100

"""Reads which seeds to run: 7, 42-51, or 1,5."""

from __future__ import annotations

import re

MOST_SEEDS = 1_000_000
LARGEST = 2**53
_RANGE = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?")


def parse_seeds(given: int | str | list[int]) -> list[int]:
    """
    >>> parse_seeds("3-5,9"), parse_seeds(7)
    ([3, 4, 5, 9], [7])
    """
    if isinstance(given, list):
        if not given or any(not 0 <= seed <= LARGEST for seed in given):
            raise ValueError(f"expected seeds from 0 to {LARGEST}, such as 42-51")
        return list(dict.fromkeys(given))
    seeds: list[int] = []
    for part in str(given).split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise ValueError(f'"{given}" are no seeds: write one (42), a range (42-51), or several with commas')
        first, last = int(found[1]), int(found[2] or found[1])
        if last > LARGEST:
            raise ValueError(f'"{part.strip()}": a seed is at most {LARGEST}')
        if last < first or last - first >= MOST_SEEDS:
            raise ValueError(f'"{part.strip()}" is no range of seeds: smallest first, at most {MOST_SEEDS:,}')
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def written_seeds(seeds: list[int]) -> str:
    """Seeds as they are typed, in order.

    >>> written_seeds([42, 43, 44, 44, 7]), written_seeds([1, 2])
    ('42-44,7', '1,2')
    """
    parts: list[list[int]] = []
    for seed in dict.fromkeys(seeds):
        if parts and parts[-1][-1] + 1 == seed:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    texts = [f"{part[0]}-{part[-1]}" if len(part) > 2 else ",".join(map(str, part)) for part in parts]
    return ",".join(texts)

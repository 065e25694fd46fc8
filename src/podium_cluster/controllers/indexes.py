"""Sets of completion indexes as an Indexed Job's status writes them: "0-4,7,9,10"; only three or more make a range."""

from __future__ import annotations

from collections.abc import Iterable


def parse_indexes(text: str, completions: int) -> set[int]:
    """The indexes below `completions`; what cannot be read is left out.

    >>> sorted(parse_indexes("0-2,5", 10))
    [0, 1, 2, 5]
    """
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """
    >>> format_indexes({0, 1, 2, 5, 7, 8})
    '0-2,5,7,8'
    """
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)

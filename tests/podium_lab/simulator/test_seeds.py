"""Seeds are read as they are typed, the same way for every command that takes them."""

from __future__ import annotations

import pytest

from podium.config.seeds import parse_seeds


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        (7, [7]),
        ("417", [417]),
        ("1-3", [1, 2, 3]),
        ("1-2, 7", [1, 2, 7]),
        ("5-5", [5]),
        ("3,1,3", [3, 1]),
        ([4, 4, 2], [4, 2]),
    ],
)
def test_seeds_are_numbers_ranges_and_lists(given: int | str | list[int], seeds: list[int]) -> None:
    assert parse_seeds(given) == seeds


@pytest.mark.parametrize(
    "given", ["", "a", "-3", "3-1", "1-", "1..5", "0-99999999", -1, [], [-1], "9" * 5000, 2**64, [2**64], str(2**63)]
)
def test_what_is_no_seed_is_refused(given: int | str | list[int]) -> None:
    with pytest.raises(ValueError, match="seed"):
        parse_seeds(given)

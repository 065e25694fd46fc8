"""Policy files: what is written can be read, and what is wrong is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium_lab.learned.policy_file import SHIPPED, PolicyError, decoded, encoded, path_of, read_policy
from tests.podium_lab.learned.policies import policy, random_policy

GOOD = policy({"F": 1.0, "price": -0.3})


@pytest.mark.parametrize("name", SHIPPED)
def test_what_ships_can_be_used(name: str) -> None:
    assert read_policy(path_of(name)).name == name


def test_what_is_written_can_be_read() -> None:
    given = random_policy(1)
    found = decoded(encoded(given), "it")
    assert (found.matrix() == given.matrix()).all()
    assert encoded(found) == encoded(given)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"apiVersion": "podium/policy/v9"}, "this version reads"),
        ({"termsHash": "x"}, "train it again"),
        ({"sha256": "x"}, "was changed after it was written"),
        ({"weights": {**GOOD.weights, "cpuOnly": {"price": 1.0}}}, "cannot act on such pods"),
        ({"weights": {**GOOD.weights, "cpuOnly": {"nonsense": 1.0}}}, 'there is no term "nonsense"'),
        ({"weights": {"cpuOnly": {}}}, "missing"),
        ({"weights": {**GOOD.weights, "others": {}}}, 'there is no group "others"'),
        ({"calibration": {"offset": 50, "scale": 0}}, "scale above 0"),
        ({"provenance": {}}, "provenance.command is missing"),
        ({"provenance": {**GOOD.provenance, "seeds": ["x"]}}, "provenance.seeds is no list of whole numbers"),
        ({"extra": 1}, "is no policy"),
        ({"trainedOn": {"ranges": {"C1": [0, 1]}}}, "no range of a state term"),
    ],
)
def test_what_is_wrong_is_refused(change: dict[str, Any], words: str) -> None:
    document = {**msgspec.json.decode(encoded(GOOD)), **change}
    with pytest.raises(PolicyError, match=words):
        decoded(msgspec.json.encode(document), "it")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "schema"),
        (encoded(GOOD)[:200], "schema"),
        (encoded(GOOD).replace(b"-0.3", b"NaN"), "nan"),
        (b"[" * 100_000, "schema"),
        (b"\x80\x04\x95", "schema"),
    ],
)
def test_text_that_is_no_policy_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(PolicyError) as caught:
        decoded(text, "it")
    assert caught.value.reason == reason


def test_a_file_that_is_too_large_or_gone_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b" " * 16_000_001)
    for path, words in ((large, "larger than"), (tmp_path / "gone", "No such file"), (tmp_path, "cannot be read")):
        with pytest.raises(PolicyError, match=words):
            read_policy(path)

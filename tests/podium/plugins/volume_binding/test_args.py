"""The arguments of VolumeBinding and what is said about wrong ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.config.field import FieldPath
from podium.kube.versions import KNOWN, NEWEST
from podium.plugins.volume_binding import VolumeBindingArgs

REMOVE = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"


@pytest.mark.parametrize(
    ("args", "messages"),
    [
        ({}, []),
        ({"bindTimeoutSeconds": 0}, []),
        (
            {"bindTimeoutSeconds": -1},
            ["args.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"],
        ),
        (
            {"shape": [{"utilization": 0, "score": 10}]},
            [f'args.shape: Invalid value: [{{"Utilization":0,"Score":10}}]: {REMOVE}'],
        ),
        ({"shape": []}, [f"args.shape: Invalid value: []: {REMOVE}"]),
        ({"shape": None}, []),
    ],
)
def test_wrong_arguments_are_told_in_kube_schedulers_words(args: dict[str, Any], messages: list[str]) -> None:
    decoded = msgspec.convert(args, VolumeBindingArgs)
    path, rules = FieldPath(("args",)), KNOWN["1.36"]
    decoded = decoded.with_defaults_of(rules)
    assert [str(error) for error in (*decoded.validate(path), *decoded.validate_by(path, rules))] == messages


@pytest.mark.parametrize(
    ("shape", "messages"),
    [
        (None, []),
        ([], []),
        ([{"utilization": 0, "score": 10}], []),
        (
            [{"utilization": 0, "score": 11}],
            ["args.shape[0].score: Invalid value: 11: not in valid range [0, 10]"],
        ),
    ],
)
def test_with_scoring_by_capacity_the_shape_is_checked_and_has_a_default(shape: Any, messages: list[str]) -> None:
    decoded = msgspec.convert({"shape": shape}, VolumeBindingArgs).with_defaults_of(NEWEST)
    assert decoded.shape
    assert [str(error) for error in decoded.validate_by(FieldPath(("args",)), NEWEST)] == messages


def test_the_default_is_ten_minutes() -> None:
    assert VolumeBindingArgs().bind_timeout_seconds == 600

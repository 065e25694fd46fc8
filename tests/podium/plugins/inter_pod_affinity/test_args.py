from __future__ import annotations

import msgspec
import pytest

from podium.config.field import FieldPath
from podium.plugins.inter_pod_affinity import InterPodAffinityArgs


def complaints(**args: object) -> list[str]:
    return [str(error) for error in msgspec.convert(args, InterPodAffinityArgs).validate(FieldPath(("args",)))]


def test_required_affinity_of_placed_pods_is_worth_one_point_and_wishes_count_by_default() -> None:
    args = InterPodAffinityArgs()
    assert (args.hard_pod_affinity_weight, args.ignore_preferred_terms_of_existing_pods) == (1, False)


@pytest.mark.parametrize("weight", [0, 1, 100])
def test_weights_from_0_to_100_are_fine(weight: int) -> None:
    assert complaints(hardPodAffinityWeight=weight) == []


@pytest.mark.parametrize("weight", [-1, 101])
def test_other_weights_are_not(weight: int) -> None:
    expected = f"args.hardPodAffinityWeight: Invalid value: {weight}: not in valid range [0, 100]"
    assert complaints(hardPodAffinityWeight=weight) == [expected]

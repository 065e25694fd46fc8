"""The numbers of a rollout, without any cluster."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_cluster.controllers import rollout
from tests.podium_cluster.apiserver.embedded import deployment

Object = dict[str, Any]


def replicas(
    name: str, size: int, available: int | None = None, *, max_: int | None = None, desired: int | None = None
) -> Object:
    annotations = {rollout.MAX: str(max_)} if max_ is not None else {}
    if desired is not None:
        annotations[rollout.DESIRED] = str(desired)
    available = size if available is None else available
    metadata = {"name": name, "creationTimestamp": f"2026-01-01T00:00:{name[-1:]}0Z", "annotations": annotations}
    return {"metadata": metadata, "spec": {"replicas": size}, "status": {"availableReplicas": available}}


def rolling(size: int, surge: int | str, unavailable: int | str) -> Object:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    return deployment(replicas=size, strategy=strategy)


@pytest.mark.parametrize(
    ("size", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),
        (4, "25%", "25%", (1, 1)),
        (1, "25%", "25%", (1, 0)),
        (10, 0, 0, (0, 1)),
        (3, "0%", "10%", (0, 1)),
        (5, 2, 3, (2, 3)),
    ],
)
def test_percentages_round_up_for_surge_and_down_for_unavailable(
    size: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]
) -> None:
    assert rollout.fenceposts(rolling(size, surge, unavailable)) == expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (0, 10, 3),  # three more than ten may be there
        (3, 10, 3),  # no room
        (3, 8, 5),
        (9, 0, 10),  # never more than asked for
    ],
)
def test_the_new_set_grows_into_the_room_that_the_surge_leaves(new: int, old: int, expected: int) -> None:
    sets = [replicas("old-1", old), replicas("new-2", new)]
    assert rollout.size_of_new(rolling(10, 3, 2), sets, sets[1]) == expected


def test_old_sets_shrink_by_what_is_unhealthy_first_and_then_by_what_is_spare() -> None:
    # 10 wanted, 2 may be missing; 8 old of which 3 are not available, 5 new of which all are
    old = [replicas("a-1", 4, available=2), replicas("b-2", 4, available=3)]
    assert rollout.sizes_of_old(rolling(10, 3, 2), old, replicas("new-3", 5)) == {"a-1": 0, "b-2": 3}


def test_unhealthy_old_pods_go_only_as_far_as_there_is_room() -> None:
    # 10 wanted, 2 may be missing, 11 there of which 1 new is not available: 11 − 8 − 1 may go
    old = [replicas("a-1", 10, available=0)]
    assert rollout.sizes_of_old(rolling(10, 3, 2), old, replicas("new-2", 1, available=0)) == {"a-1": 8}


def test_nothing_shrinks_while_the_new_pods_are_not_available() -> None:
    assert rollout.sizes_of_old(rolling(10, 3, 2), [replicas("a-1", 8)], replicas("new-2", 5, available=0)) == {}


@given(
    st.integers(1, 30),
    st.integers(0, 10),
    st.integers(0, 10),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=4),
    st.tuples(st.integers(0, 30), st.integers(0, 30)),
)
def test_a_step_never_takes_away_more_available_pods_than_may_be_missing(
    size: int, surge: int, unavailable: int, olds: list[tuple[int, int]], news: tuple[int, int]
) -> None:
    wanted = rolling(size, surge, unavailable)
    old = [replicas(f"old-{i}", n, min(n, up)) for i, (n, up) in enumerate(olds)]
    new = replicas("new-9", news[0], min(*news))
    after = rollout.sizes_of_old(wanted, old, new)
    up_before = rollout.available([*old, new])
    up_after = rollout.available([new]) + sum(
        min(rollout.available([each]), after.get(each["metadata"]["name"], rollout.replicas(each))) for each in old
    )
    assert all(
        0 <= count <= rollout.replicas(each) for each in old if (count := after.get(each["metadata"]["name"], 0)) >= 0
    )
    assert up_after >= min(up_before, size - rollout.max_unavailable(wanted))


def test_scaling_in_the_middle_of_a_rollout_is_shared_out_by_size() -> None:
    wanted = rolling(20, 0, 1)
    old, new = replicas("old-1", 6, max_=10), replicas("new-2", 4, max_=10)
    assert rollout.sizes_when_scaled(wanted, [old], new) == {"old-1": 12, "new-2": 8}


def test_what_cannot_be_shared_out_evenly_goes_to_the_largest() -> None:
    wanted = rolling(11, 0, 1)
    old, new = replicas("old-1", 5, max_=10), replicas("new-2", 5, max_=10)
    sizes = rollout.sizes_when_scaled(wanted, [old], new)
    assert sizes is not None
    assert sum(sizes.values()) == 11
    assert sizes == {"new-2": 6, "old-1": 5}


def test_scaling_to_nothing_empties_every_set() -> None:
    old, new = replicas("old-1", 6, max_=10), replicas("new-2", 4, max_=10)
    assert rollout.sizes_when_scaled(rolling(0, 1, 1), [old], new) == {"old-1": 0, "new-2": 0}


def test_a_revision_that_comes_back_remembers_the_numbers_it_had() -> None:
    found = rollout.annotations_of_new(deployment(), replicas("web-1", 1), 1)
    again = rollout.annotations_of_new(deployment(), {"metadata": {"annotations": found}}, 3)
    third = rollout.annotations_of_new(deployment(), {"metadata": {"annotations": again}}, 5)
    assert (third[rollout.REVISION], third[rollout.REVISION_HISTORY]) == ("5", "1,3")

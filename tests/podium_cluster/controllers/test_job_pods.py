"""What a Job's pods mean for it, without any cluster."""

from typing import Any

import pytest

from podium_cluster.controllers.job_pods import (
    FINALIZER,
    INDEX,
    counted,
    free_indexes,
    new_pod,
    too_many,
    wanted,
)
from podium_cluster.controllers.pods import PodView, PodViewMeta, PodViewSpec, PodViewStatus
from tests.podium_cluster.apiserver.embedded import job


def pod(
    name: str, phase: str = "Running", *, deleted: bool = False, tracked: bool = True, index: int | None = None
) -> PodView:
    return PodView(
        metadata=PodViewMeta(
            name=name,
            uid=name,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleted else None,
            finalizers=(FINALIZER,) if tracked else (),
            annotations={} if index is None else {INDEX: str(index)},
            creation_timestamp="2026-01-01T00:00:00Z",
        ),
        spec=PodViewSpec(node_name="n"),
        status=PodViewStatus(phase=phase),
    )


@pytest.mark.parametrize(
    ("spec", "succeeded", "active", "expected"),
    [
        ({"completions": 5, "parallelism": 2}, 0, 0, 2),
        ({"completions": 5, "parallelism": 2}, 4, 1, 1),
        ({"completions": 5, "parallelism": 2}, 6, 0, 0),
        ({"completions": 5, "parallelism": 0}, 0, 3, 0),
        ({"parallelism": 3}, 0, 1, 3),
        ({"parallelism": 3}, 1, 2, 2),  # one success is enough: no new ones, and those that run may end
    ],
)
def test_so_many_pods_should_be_active(spec: dict[str, Any], succeeded: int, active: int, expected: int) -> None:
    assert wanted(job(**spec), succeeded, active) == expected


def test_each_ended_pod_counts_once_and_one_that_was_deleted_has_failed() -> None:
    given = job()
    given["status"] = {"uncountedTerminatedPods": {"succeeded": ["noted"]}}
    pods = [
        pod("good", "Succeeded"),
        pod("bad", "Failed"),
        pod("gone", deleted=True),
        pod("noted", "Succeeded"),
        pod("counted", "Failed", tracked=False),
        pod("running"),
    ]
    found = counted(given, pods)
    assert [each.name for each in found.succeeded] == ["good"]
    assert [each.name for each in found.failed] == ["bad", "gone"]
    assert [each.name for each in found.active] == ["running"]
    assert found.terminating == 1


def test_where_only_failed_pods_are_replaced_a_deleted_one_has_not_failed_yet() -> None:
    assert counted(job(podReplacementPolicy="Failed"), [pod("gone", deleted=True)]).failed == []


def test_doubled_and_unknown_indexes_go_first() -> None:
    given = job(completions=3, parallelism=3, completionMode="Indexed")
    pods = [pod("a", index=0), pod("b", index=0), pod("c", index=1), pod("d", index=7), pod("e")]
    gone = {each.name for each in too_many(given, pods, 0, 1_800_000_000.0)}
    assert gone in ({"a", "d", "e"}, {"b", "d", "e"})


def test_indexes_that_neither_run_nor_are_done_are_free() -> None:
    given = job(completions=5, parallelism=5, completionMode="Indexed")
    assert free_indexes(given, [pod("a", index=1)], {0, 4}) == [2, 3]


def test_a_pod_keeps_the_index_variable_that_it_brought() -> None:
    given = job(completions=1, parallelism=1, completionMode="Indexed")
    mine = {"name": "JOB_COMPLETION_INDEX", "value": "mine"}
    given["spec"]["template"]["spec"]["containers"][0]["env"] = [mine]
    given["metadata"] |= {"namespace": "default", "uid": "u"}
    assert new_pod(given, 0)["spec"]["containers"][0]["env"] == [mine]

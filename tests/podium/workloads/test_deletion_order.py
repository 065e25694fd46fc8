"""Which pods go first: the table of kube-controller-manager's rules, each against the next."""

import pytest

from podium.kube.meta import format_time
from podium.workloads.deletion_order import DELETION_COST, in_deletion_order
from podium_cluster.controllers.pods import (
    PodView,
    PodViewCondition,
    PodViewContainerStatus,
    PodViewMeta,
    PodViewSpec,
    PodViewStatus,
)

NOW = 1_800_000_000.0


def pod(
    name: str,
    *,
    node: str = "n",
    phase: str = "Running",
    ready_for: float | None = 100.0,
    age: float = 1000.0,
    cost: str = "",
    restarts: int = 0,
) -> PodView:
    ready = PodViewCondition(type="Ready", status="True", last_transition_time=format_time(NOW - (ready_for or 0)))
    annotations = {DELETION_COST: cost} if cost else {}
    created = format_time(NOW - age)
    return PodView(
        metadata=PodViewMeta(
            name=name, namespace="default", uid=name, annotations=annotations, creation_timestamp=created
        ),
        spec=PodViewSpec(node_name=node),
        status=PodViewStatus(
            phase=phase,
            conditions=(ready,) if ready_for is not None else (),
            container_statuses=(PodViewContainerStatus(restart_count=restarts),),
        ),
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("unplaced", node=""), pod("placed")),
        (pod("pending", phase="Pending"), pod("running")),
        (pod("unready", ready_for=None), pod("ready")),
        (pod("cheap", cost="-1"), pod("free")),
        (pod("free"), pod("dear", cost="10")),
        (pod("ready for long but cheap", cost="1", ready_for=9000), pod("dear", cost="2", ready_for=1)),
        (pod("ready for 10 s", ready_for=10), pod("ready for 1000 s", ready_for=1000)),
        (pod("restarted", restarts=3), pod("quiet")),
        (pod("young", age=10, ready_for=5), pod("old", age=9000, ready_for=5)),
        (pod("a: same magnitude, so the uid decides", ready_for=130), pod("b", ready_for=129)),
    ],
    ids=lambda each: each.name,
)
def test_the_one_goes_before_the_other(first: PodView, second: PodView) -> None:
    assert in_deletion_order([second, first], [], NOW) == [first, second]
    assert in_deletion_order([first, second], [], NOW) == [first, second]


def test_pods_that_share_a_node_go_before_one_that_is_alone() -> None:
    alone, one, two = pod("alone", node="a"), pod("one", node="b"), pod("two", node="b")
    ordered = in_deletion_order([alone, one, two], [alone, one, two], NOW)
    assert [each.name for each in ordered] == ["one", "two", "alone"]


def test_a_cost_that_is_no_number_counts_as_zero() -> None:
    strange, dear = pod("strange", cost="cheap"), pod("dear", cost="1")
    assert in_deletion_order([dear, strange], [], NOW) == [strange, dear]

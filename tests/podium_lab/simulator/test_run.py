"""Pods arrive, wait, run and end; nodes fail, drain, leave and join; and no pod is ever lost from the account."""

from __future__ import annotations

import gc
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.engine.scheduler import Scheduler
from tests.podium_lab.simulator.scenarios import SMALL, course, last, run_one
from tools.kit.effort import examples

ONE_NODE = """
nodes: {{count: 1, allocatable: {{cpu: 2, memory: 8Gi}}}}
workload: [{workload}]
checkpoints: {{every: 10s}}
"""


EIGHT_FOR_20_MINUTES = """
nodes: {count: 4, allocatable: {cpu: 4, memory: 8Gi}}
workload: {generate: {count: 8, lifetime: 20m, shapes: [{requests: {cpu: 1, memory: 1Gi}}]}}
"""


def one_node(*workload: str) -> str:
    return ONE_NODE.format(workload=", ".join(workload))


def pods(count: int, cpu: int = 1, priority: int = 0, start: str = "0s", lifetime: str = "60s", grace: int = 0) -> str:
    spec = f"{{terminationGracePeriodSeconds: {grace}}}"
    shape = f"{{requests: {{cpu: {cpu}}}, priority: {priority}, spec: {spec}}}"
    return f"{{generate: {{count: {count}, start: {start}, lifetime: {lifetime}, shapes: [{shape}]}}}}"


def conserved(figures: dict[str, float]) -> bool:
    kept = sum(figures[name] for name in ("running", "pending", "ended", "dropped", "lost"))
    return figures["arrived"] == kept


def test_a_pod_waits_until_there_is_room() -> None:
    run = run_one(one_node(pods(3)))
    end = last(run)
    assert (end["arrived"], end["placed"], end["ended"]) == (3, 3, 3)
    assert end["wait_max_s"] == pytest.approx(60, rel=0.03)
    assert end["wait_mean_s"] == pytest.approx(20, rel=0.03)
    assert end["time_s"] == pytest.approx(120)


def test_allocation_is_of_what_nodes_offer() -> None:
    run = run_one(one_node(pods(1, start="5s")))
    assert course(run, "cpu_allocation_pct")[:7] == [50.0] * 6 + [0.0]


def test_a_pod_that_never_fits_is_unplaced_with_its_reason() -> None:
    run = run_one(one_node(pods(2, cpu=3)))
    assert run.unplaced == {"Insufficient cpu": 2}
    assert last(run)["pending"] == 2


def test_a_pod_that_fits_nowhere_can_be_dropped() -> None:
    run = run_one(one_node(pods(3)), "unschedulable=drop")
    assert run.unplaced == {"Insufficient cpu": 1}
    assert (last(run)["ended"], last(run)["dropped"]) == (2, 1)


def test_a_duration_ends_the_run() -> None:
    run = run_one(one_node(pods(3)), "duration=65s")
    assert last(run)["time_s"] == pytest.approx(65)
    assert (last(run)["ended"], last(run)["running"]) == (2, 1)


def test_a_start_delay_lengthens_the_stay() -> None:
    assert last(run_one(one_node(pods(1)), "startDelay=5s"))["time_s"] == pytest.approx(65)


def test_decisions_can_take_time() -> None:
    end = last(run_one(one_node(pods(2)), "decision=1s"))
    assert end["wait_max_s"] == pytest.approx(1, rel=0.03)


@pytest.mark.parametrize(("evicted", "ended", "time"), [("restart", 3, 120), ("resume", 3, 110), ("lost", 2, 70)])
def test_a_more_important_pod_preempts(evicted: str, ended: int, time: float) -> None:
    """Two pods of 60 s fill the node; after 10 s one gives way, and begins anew, goes on or is lost."""
    run = run_one(one_node(pods(2), pods(1, priority=5, start="10s")), f"evicted={evicted}")
    end = last(run)
    assert (end["preempted"], end["ended"]) == (1, ended)
    assert end["time_s"] == pytest.approx(time, abs=1.5)
    assert conserved(end)


def test_a_victim_stays_for_its_grace_period() -> None:
    run = run_one(one_node(pods(2, grace=20), pods(1, priority=5, start="10s")))
    assert last(run)["wait_max_s"] == pytest.approx(30, abs=12)
    assert last(run)["ended"] == 3


def test_pods_of_a_failed_node_are_replaced_elsewhere() -> None:
    text = (
        SMALL.replace("count: 60", "count: 8").replace("{exponential: 2m}", "20m").replace("{exponential: 10s}", "0s")
    )
    run = run_one(text, 'faults=[{kind: fail, at: 1m, lasts: 1h, evictAfter: 2m, nodes: "node-0"}]')
    end = last(run)
    assert end["evictions"] == end["restarts"] == 2
    assert end["ended"] == 8
    assert end["time_s"] == pytest.approx(60 + 120 + 1200, abs=1) or end["time_s"] > 1380


def test_pods_go_on_when_a_node_is_back_in_time() -> None:
    text = (
        SMALL.replace("count: 60", "count: 8").replace("{exponential: 2m}", "20m").replace("{exponential: 10s}", "0s")
    )
    run = run_one(text, 'faults=[{kind: fail, at: 1m, lasts: 1m, evictAfter: 2m, nodes: "node-0"}]')
    end = last(run)
    assert (end["evictions"], end["ended"]) == (0, 8)
    assert end["time_s"] == pytest.approx(1260)


def test_a_drained_node_takes_no_pods_until_it_is_back() -> None:
    run = run_one(one_node(pods(1, start="20s")), "faults=[{kind: drain, at: 10s, lasts: 1m}]")
    assert last(run)["wait_max_s"] == pytest.approx(50, rel=0.03)


def test_a_node_that_leaves_is_gone_and_one_that_joins_takes_its_pods() -> None:
    join = "{kind: join, at: 40s, group: {count: 1, name: 'new-{index}', allocatable: {cpu: 2, memory: 8Gi}}}"
    run = run_one(one_node(pods(2)), f"faults=[{{kind: leave, at: 10s, lasts: 5s}}, {join}]")
    end = last(run)
    assert (end["nodes"], end["evictions"], end["ended"]) == (1, 2, 2)
    assert 0 in course(run, "nodes")


def test_the_same_seed_gives_the_same_run_and_another_another() -> None:
    first, again, other = run_one(SMALL), run_one(SMALL), run_one(SMALL, seed=2)
    assert first.table.tobytes() == again.table.tobytes()
    assert first.table.tobytes() != other.table.tobytes()


def test_profiles_see_the_same_pods_at_the_same_times() -> None:
    text = SMALL + "profiles:\n- {name: a}\n- name: b\n  profile: {percentageOfNodesToScore: 10}\n"
    runs = [run_one(text, profile=which) for which in (0, 1)]
    assert course(runs[0], "arrived")[:10] == course(runs[1], "arrived")[:10]


FAULTS = st.sampled_from(
    [
        "{kind: fail, every: {exponential: 2m}, lasts: {exponential: 1m}, evictAfter: 30s}",
        "{kind: drain, every: {exponential: 3m}, lasts: {exponential: 1m}}",
        "{kind: leave, at: 3m, lasts: 20s}",
        "{kind: join, at: 2m, group: {count: 2, name: 'new-{index}', allocatable: {cpu: 4, memory: 8Gi}}}",
    ]
)


@settings(deadline=None, max_examples=examples(25))
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 80),
    faults=st.lists(FAULTS, max_size=3),
    drop=st.booleans(),
    evicted=st.sampled_from(["restart", "resume", "lost"]),
    decision=st.sampled_from(["0s", "300ms"]),
)
def test_pods_are_conserved(seed: int, count: int, faults: list[str], drop: bool, evicted: str, decision: str) -> None:
    important = "{requests: {cpu: 2}, priority: 3, spec: {terminationGracePeriodSeconds: 10}}"
    run = run_one(
        SMALL,
        f"generate.count={count}",
        f"shapes=[{{requests: {{cpu: 1, memory: 1Gi}}}}, {important}]",
        f"faults=[{', '.join(faults)}]",
        f"unschedulable={'drop' if drop else 'wait'}",
        f"evicted={evicted}",
        f"decision={decision}",
        "duration=20m",
        seed=seed,
    )
    names = ("arrived", "running", "pending", "ended", "dropped", "lost", "placed")
    for row in zip(*(course(run, name) for name in names), strict=True):
        figures = dict(zip(names, row, strict=True))
        assert conserved(figures)
        assert 0 <= figures["running"] <= figures["placed"]
    assert all(math.isnan(each) or 0 <= each <= 100 for each in course(run, "cpu_allocation_pct"))


def test_a_run_that_is_over_is_freed() -> None:
    def schedulers() -> int:
        gc.collect()
        return sum(isinstance(each, Scheduler) for each in gc.get_objects())

    before = schedulers()
    run_one(SMALL)
    assert schedulers() == before

"""What viewers hold after all ticks is what the scheduler has; and what the ring gives back is what was."""

from __future__ import annotations

import asyncio

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.testing import node, pod
from podium_dashboard.access import EVERYBODY
from podium_dashboard.columns import ChangedNodes, NodeColumns
from podium_dashboard.feed import Feed
from podium_dashboard.records import Snapshot
from podium_dashboard.time_ring import TimeRing
from tests.podium_dashboard.scheduler import SmallScheduler

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 12)),
        st.tuples(st.just("gone"), st.integers(0, 12)),
        st.tuples(st.just("node"), st.integers(0, 5)),
        st.tuples(st.just("no node"), st.integers(0, 5)),
        st.tuples(st.just("cordon"), st.integers(0, 5)),
        st.tuples(st.just("look"), st.just(0)),
    ),
    max_size=40,
)


def _step(scheduler: SmallScheduler, what: str, number: int) -> None:
    engine = scheduler.engine
    name = f"node-{number}"
    if what == "pod":
        scheduler.add(pod(f"pod-{number}", cpu="500m", memory="1Gi"))
    elif what == "gone":
        found = next((each.pod for each in engine.cluster.pods.values() if each.pod.name == f"pod-{number}"), None)
        waiting = engine.cluster.objects.pending_pods.get(f"default/pod-{number}")
        if found or waiting:
            engine.intake.delete(found or waiting)
    elif what in ("node", "cordon"):
        scheduler.add(node(name, cpu=4, spec={"unschedulable": what == "cordon"}))
    elif what == "no node" and (known := engine.cluster.row_of.get(name)) is not None:
        gone = engine.cluster.nodes[known]
        if gone is not None:
            engine.intake.delete(gone)
    scheduler.schedule()


def _applied(snapshot: Snapshot, feed: Feed) -> Snapshot:
    """As the page takes a tick in."""
    moment = feed._moment
    assert moment is not None
    tick = moment._tick
    if tick.reset:
        fresh = feed.snapshot(EVERYBODY)
        assert fresh is not None
        return fresh
    for number, row in enumerate(tick.rows):
        snapshot.pods[row] = tick.pods[number]
        snapshot.flags[row] = tick.flags[number]
        for line, resource in enumerate(snapshot.resources):
            resource.requested[row] = tick.requested[line][number]
    return snapshot


@given(STEPS)
def test_ticks_lead_from_one_snapshot_to_the_next(steps: list[tuple[str, int]]) -> None:
    async def check() -> None:
        scheduler = SmallScheduler()
        scheduler.add(node("first", cpu=4))
        feed = Feed(scheduler.source())
        await feed.look()
        held = feed.snapshot(EVERYBODY)
        assert held is not None
        for what, number in [*steps, ("look", 0)]:
            if what != "look":
                _step(scheduler, what, number)
                continue
            await feed.look()
            held = _applied(held, feed)
        fresh_feed = Feed(scheduler.source())
        await fresh_feed.look()
        fresh = fresh_feed.snapshot(EVERYBODY)
        assert fresh is not None
        for name in ("names", "pods", "allowed_pods", "flags", "resources", "labels"):
            assert getattr(held, name) == getattr(fresh, name), name

    asyncio.run(check())


@given(st.lists(st.tuples(st.floats(0.5, 90), st.integers(0, 3), st.integers(0, 1000)), min_size=1, max_size=30))
def test_the_past_comes_back_as_it_was(changes: list[tuple[float, int, int]]) -> None:
    ring, time = TimeRing(), 1000.0
    columns = NodeColumns(
        ["a", "b", "c", "d"],
        [],
        ("cpu", "memory"),
        np.full((2, 4), 1000),
        np.zeros((2, 4), dtype=np.int64),
        np.zeros(4, dtype=np.int64),
        np.full(4, 110),
        [],
    )
    ring.add_whole(time, columns)
    past = [(time, columns.requested.copy(), columns.pods.copy())]
    for pause, place, value in changes:
        time += pause
        columns.requested[:, place] = (value, value * 2)
        columns.pods[place] = value % 7
        places = np.array([place], dtype=np.intp)
        ring.add_changes(time, ChangedNodes(places, [], columns.requested[:, places], columns.pods[places]), columns)
        past.append((time, columns.requested.copy(), columns.pods.copy()))
    for then, requested, pods in past:
        found = ring.at(then)
        assert found is not None
        assert (found[1].requested == requested).all()
        assert (found[1].pods == pods).all()
    assert ring.at(999.0) is None


def test_the_ring_forgets_the_oldest_when_it_is_full() -> None:
    ring = TimeRing(most_bytes=20_000)
    amounts = np.zeros((2, 50), dtype=np.int64)
    names = [f"node-{number}" for number in range(50)]
    columns = NodeColumns(names, [], ("cpu", "memory"), amounts, amounts.copy(), amounts[0].copy(), amounts[0], [])
    for number in range(400):
        columns.requested[:] = np.random.default_rng(number).integers(0, 10**9, (2, 50))
        everything = ChangedNodes(np.arange(50), [], columns.requested, columns.pods)
        ring.add_changes(1000.0 + 7 * number, everything, columns)
    assert ring.bytes_used <= 20_000 + 120 * 50 + 30_000
    assert ring.begins is not None
    assert ring.begins > 1000.0
    found = ring.at(1000.0 + 7 * 399)
    assert found is not None
    assert (found[1].requested == columns.requested).all()

"""What `podium run` says of itself: whom it waits for, that it leads, what it binds, and how it ended."""

from __future__ import annotations

import asyncio
import logging
import random
from contextlib import AsyncExitStack
from typing import Any

import pytest

from podium.client import Access, Client
from podium.engine.queue.scheduling_queue import Pending
from podium.framework import SystemClock
from podium.run.activity import Activity
from podium.run.assembly import RunOptions, build_process
from podium.serving.log import LOG
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.server import ApiServer
from tests.podium.framework.runtimes import setup
from tests.podium.run.test_driver import until
from tools.testbed.objects import make_node, make_pod

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
SOON = {"leaseDuration": "30s", "renewDeadline": "20s", "retryPeriod": "0.1s"}


def lease_of(holder: str) -> dict[str, Any]:
    times = dict.fromkeys(("acquireTime", "renewTime"), "2026-01-01T00:00:00.000000Z")
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 1, "leaseTransitions": 1, **times},
    }


def test_it_says_whom_it_waits_for_that_it_leads_what_it_binds_and_how_it_ended(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOG, "propagate", True)

    async def main() -> int:
        stop = asyncio.Event()
        api = EmbeddedApi(clock=SystemClock(), rng=random.Random(1), database=None, gated_kinds=())
        server = ApiServer(api, host="127.0.0.1", port=0)
        await server.start()
        config, registry = setup(default=True, leaderElection=SOON)
        try:
            async with Client(Access(server.url)) as client, AsyncExitStack() as stack, asyncio.timeout(60):
                await client.post(LEASE, lease_of("other_1"))
                await client.post("/api/v1/nodes", make_node("n1"))
                await client.post("/api/v1/namespaces/default/pods", make_pod("p1"))
                process = build_process(config, registry, Access(server.url), RunOptions(), stack)
                running = asyncio.create_task(process.run(stop))
                await until(lambda: process.live.activity.bound == 1)
                stop.set()
                return await running
        finally:
            await server.stop()

    with caplog.at_level(logging.DEBUG, logger="podium"):
        assert asyncio.run(main()) == 0
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]
    told = [each for each in told if not each.startswith("the event loop has been blocked")]  # on a loaded machine
    lease = "lease kube-system/kube-scheduler"
    assert told[0].startswith(f"trying to acquire {lease}, as ")
    assert told[1:] == [
        f"{lease} is held by other_1; waiting for it",
        f"this process leads: it holds {lease}",
        "podium runs: scheduling for default-scheduler",
        "stopping: finishing what is under way",
        "stopped: pods bound since the start 1; left waiting: no pods",
    ]
    assert "pod default/p1 is bound to node n1" in caplog.messages


@pytest.mark.parametrize(("answers", "leader"), [(True, "other_1"), (False, "no process that is known of")])
def test_one_that_stops_while_it_waits_says_for_whom(
    answers: bool, leader: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOG, "propagate", True)

    async def main() -> int:
        stop = asyncio.Event()
        api = EmbeddedApi(clock=SystemClock(), rng=random.Random(1), database=None, gated_kinds=())
        server = ApiServer(api, host="127.0.0.1", port=0)
        await server.start()
        config, registry = setup(default=True, leaderElection={"retryPeriod": "0.1s"})
        try:
            async with Client(Access(server.url)) as client, AsyncExitStack() as stack, asyncio.timeout(60):
                await client.post(LEASE, lease_of("other_1"))
                if not answers:
                    await server.stop()
                process = build_process(config, registry, Access(server.url), RunOptions(), stack)
                running = asyncio.create_task(process.run(stop))
                await until(lambda: any("lease kube-system/kube-scheduler" in line for line in caplog.messages[1:]))
                stop.set()
                return await running
        finally:
            if answers:
                await server.stop()

    with caplog.at_level(logging.INFO, logger="podium"):
        assert asyncio.run(main()) == 0
    assert caplog.messages[-1] == f"stopped while {leader} led"


def test_the_line_of_a_minute_says_what_happened_since_the_last_one() -> None:
    activity = Activity()
    none, some = Pending(0, 0, 0, 0), Pending(1, 0, 2, 0)
    assert activity.take_line(some) is None
    activity.bound += 3
    activity.attempt_failed("shop/web", True, "0/3 nodes are available: 3 Insufficient cpu.")
    activity.attempt_failed("shop/db", False, "x" * 2000)
    line = activity.take_line(some)
    assert line is not None
    assert line.startswith(
        "the last minute: pods bound 3, attempts without a node 1, failed 1; waiting now: 1 to be tried, 2 that fit "
        "nowhere; the last failure: pod shop/db: xxx"
    )
    assert len(line) < 600
    assert activity.take_line(some) is None
    activity.bound += 1
    assert activity.take_line(none) == (
        "the last minute: pods bound 1, attempts without a node 0, failed 0; waiting now: no pods"
    )

"""SIGUSR2 makes the scheduler write to its log what it holds in memory, and where that contradicts the watch."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from podium.run.memory_dump import Mismatch, compare_nodes, compare_pods, lines
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod
from tools.testbed import ControlPlane
from tools.testbed import objects as wire


def test_memory_is_compared_with_the_watch() -> None:
    engine = World().scheduler
    nodes = [make_node("n1"), make_node("n2")]
    placed, waiting = make_pod("placed", node="n1"), make_pod("waiting")
    for each in (*nodes, placed, waiting):
        engine.intake.set(each)
    assert compare_nodes(nodes, engine.cluster) == Mismatch([], [])
    assert compare_pods([placed, waiting], engine) == Mismatch([], [])
    assert compare_nodes([nodes[0], make_node("n3")], engine.cluster) == Mismatch(["n3"], ["n2"])
    late, foreign = make_pod("late", node="n2"), make_pod("foreign", spec={"schedulerName": "another"})
    assert compare_pods([placed, late, foreign], engine) == Mismatch(["default/late"], ["default/waiting"])


def test_lines_name_nodes_and_queue() -> None:
    engine = World().scheduler
    engine.intake.set(make_node("n1", allocatable={"example.com/gpu": 2}))
    engine.intake.set(make_pod("placed", node="n1", requests={"cpu": "1500m"}))
    engine.intake.set(make_pod("gone", node="away"))
    engine.intake.set(make_pod("waiting"))
    found = list(lines(engine))
    assert found[0].startswith("node away (deleted): requested cpu=")
    assert found[1].startswith("node n1: requested cpu=1500m ")
    assert "example.com/gpu=2; pods 1 of 110; pod default/placed, uid " in found[1]
    assert found[2] == "queue: active 1, backoff 0, unschedulable 0, gated 0"
    assert found[3].startswith("queue: pod default/waiting, uid ")


def test_a_signal_writes_the_dump_and_scheduling_goes_on(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    plane.client.create(wire.make_node("n1"))
    podium = plane.start_podium()
    plane.client.create_all([wire.make_pod("fits"), wire.make_pod("big", cpu="64")])
    plane.client.poll("Pod", lambda items: any(each["spec"].get("nodeName") for each in items))
    os.kill(podium.pid, signal.SIGUSR2)
    log = _await_line(podium.log_path, "queue: pod default/big, ")
    assert "node n1: requested cpu=" in log
    assert "pod default/fits, " in log
    assert "memory and watch differ" not in log
    plane.client.create(wire.make_pod("later"))
    plane.client.poll("Pod", lambda items: sum(bool(each["spec"].get("nodeName")) for each in items) == 2)


def _await_line(path: Path, words: str) -> str:
    deadline = time.monotonic() + 60
    while words not in (log := path.read_text()):
        assert time.monotonic() < deadline, log
        time.sleep(0.05)
    return log

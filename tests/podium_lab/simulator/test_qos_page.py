"""The QoS page while a simulation runs: the columns of a live scheduler's, in virtual time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from podium_lab.simulator.qos_figures import QosFigures, SimulatedQosPage, served_qos_page
from podium_lab.simulator.timeline import EPOCH
from tools.kit.builders import make_pod
from tools.testbed.ports import free_port

EXAMPLE = Path(__file__).parents[3] / "examples" / "qos.yaml"
DEADLINE = 120.0


def ask(port: int, path: str = "/", accept: str = "*/*") -> str:
    with urlopen(Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": accept}), timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def waiting_since(epoch: float) -> QosFigures:
    figures = QosFigures()
    figures.observe(make_pod("a", metadata={"annotations": {"controller": "web", "slo": "0.5"}}), epoch)
    return figures


def test_a_run_puts_down_how_controllers_stand_in_virtual_time() -> None:
    with served_qos_page(0) as page:
        assert page.problem is None
        page.show(waiting_since(EPOCH), EPOCH + 90, 3)
        head, line = ask(page.port).splitlines()
        assert head.split() == ["CONTROLLER", "QOS/SLO", "TTV", "RUNNING", "WAITING", "BINDING"]
        assert line.split() == ["web", "0.00/0.50", "-1m30s", "0s", "1m30s", "0s"]
        assert json.loads(ask(page.port, accept="application/json"))[0]["waiting_s"] == 90
        assert json.loads(ask(page.port, "/report"))["preemptions"] == 3
        assert "web-0" in ask(page.port, "/?layout=slots")


def test_a_port_that_is_taken_is_a_problem_and_no_error() -> None:
    with served_qos_page(0) as page, served_qos_page(page.port) as second:
        assert "cannot be served" in str(second.problem)


def test_tables_are_made_a_few_times_a_second_only() -> None:
    page = SimulatedQosPage(0)
    page.show(waiting_since(EPOCH), EPOCH + 1, 0)
    first = page._shown
    page.show(waiting_since(EPOCH), EPOCH + 2, 0)
    assert page._shown is first
    page._loop.close()


def test_the_page_is_there_while_podium_simulates(tmp_path: Path) -> None:
    workload, port = tmp_path / "many.csv", free_port()
    row = "{0},{0},{0},any,0,1,7200,-1,0.85,0.85,free,0.5,job,4,800,aggregate,30001,30\n"
    workload.write_text("".join(row.format(number) for number in range(60)))
    command = [sys.executable, "-m", "podium", "simulate", str(EXAMPLE), "--set", f"workload={workload}", "--json"]
    run = subprocess.Popen(
        [*command, "--seeds", "1", "--qos-port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        rows: list[dict[str, float]] = []
        end = time.monotonic() + DEADLINE
        while not any(row["running_s"] > 0 for row in rows):
            assert run.poll() is None, rows
            assert time.monotonic() < end, rows
            try:
                rows = json.loads(ask(port, accept="application/json"))
            except (URLError, ConnectionError):
                time.sleep(0.05)
    finally:
        run.kill()
        run.communicate()

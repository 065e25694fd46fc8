"""What the other processes that serve print about requests with credentials in them: nothing of those."""

import re
import signal
from pathlib import Path

import pytest

from tests.podium.serving.hostile_requests import PLANTED, send_hostile_requests
from tests.podium_cluster.up.up_process import PodiumUp
from tests.together.cli.test_extender import running

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.mark.long
def test_podium_up_prints_no_credentials_of_requests(tmp_path: Path) -> None:
    options = ("--port", "0", "--nodes", "1", "--workload", "none", "--log-level", "debug")
    with PodiumUp(*options, home=tmp_path) as up:
        send_hostile_requests(up.url)
        up.wait_for("malformed request")
        assert up.stop(signal.SIGTERM) == 0
    assert PLANTED not in up.output
    assert "Traceback" not in up.output
    assert not CONTROL.search(up.output)


@pytest.mark.long
def test_the_extender_prints_no_credentials_of_requests() -> None:
    for form in ("text", "json"):
        with running(
            "--agents", "congestion", "--ports", "0", "--log-format", form, "--log-level", "debug"
        ) as extender:
            send_hostile_requests(f"http://127.0.0.1:{extender.ports[0]}")
            code, rest = extender.stop()
        printed = "\n".join([*extender.lines, *rest])
        assert code == 0
        assert PLANTED not in printed
        assert "Traceback" not in printed
        assert not CONTROL.search(printed)

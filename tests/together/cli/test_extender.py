"""`podium extender`: what may be typed, what it says, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.podium.cli.command import podium
from tests.podium.cli.texts import HEADER
from tests.podium.extender.questions import LOOPBACK, args, node
from tools.kit.builders import make_pod
from tools.testbed.podium import podium_environment


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ([], "say what to serve: --agents safe,congestion,pigeon"),
        (["--agents", "saef"], 'there is no agent "saef": write safe, congestion, '),
        (["--agents", "PrioritySort"], 'plugin "PrioritySort" neither filters nor scores nodes'),
        (["--agents", "safe", "--ports", "1,2"], "--ports 1,2: 2 for 1 agents; give one for each, or --port for all"),
        (["--agents", "safe", "--ports", "x"], '--ports "x" is no port: write a number from 1 to 65535'),
        (["--agents", "safe", "--ports", "1", "--port", "2"], "--port is one for all agents, --ports one for each"),
        (["--agents", "safe", "--log-level", "loud"], '--log-level "loud": write one of trace, debug, info, '),
        (["--agents", "safe", "--log-format", "xml"], '--log-format "xml": write one of text, json'),
        (["--agents", "safe", "--tls-cert-file", "a"], "--tls-cert-file is given without --tls-private-key-file"),
        (
            ["--agents", "safe", "--client-ca-file", "/nowhere"],
            "--client-ca-file /nowhere cannot be read: No such file",
        ),
    ],
)
def test_what_cannot_be_done_is_told_in_one_sentence(typed: list[str], said: str) -> None:
    ran = podium("extender", "--no-watch", *typed)
    assert (ran.code, ran.out) == (2, "")
    [sentence] = [line for line in ran.err.splitlines() if "INFO" not in line]
    assert sentence.startswith(said)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("HTTP_PORT", "http", 'environment variable HTTP_PORT: "http" is no port'),
        ("HTTP_PORT", "65536", 'environment variable HTTP_PORT: "65536" is no port'),
        ("LOG_LEVEL", "loud", 'environment variable LOG_LEVEL: "loud": write one of '),
        ("SAFEPERCENTILE", "all", 'environment variable SAFEPERCENTILE: "all" cannot be used'),
    ],
)
def test_a_variable_that_cannot_be_read_is_told_too(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    ran = podium("extender", "--agents", "safe", "--no-watch")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_arguments_that_make_no_sense_are_told_with_their_place(tmp_path: Path) -> None:
    config = tmp_path / "agents.yaml"
    for args_text, said in (("{factorMax: 0}", "must be at least 1"), ("{factor: 1}", "factor")):
        config.write_text(f"{HEADER}profiles: [{{pluginConfig: [{{name: Congestion, args: {args_text}}}]}}]\n")
        ran = podium("extender", "--agents", "congestion", "--no-watch", "--config", str(config))
        assert ran.code == 2
        assert said in ran.err
        assert "agents.yaml" in ran.err


class Running:
    """An extender process, and where it serves."""

    def __init__(self, process: subprocess.Popen[str], lines: list[str]) -> None:
        self._process = process
        self.lines = lines
        self.ports = [int(port) for line in lines for port in re.findall(r"127\.0\.0\.1:(\d+)", line)]

    def ask(self, port: int, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
        connection.request("GET" if body is None else "POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        return response.status, answer

    def stop(self) -> tuple[int, list[str]]:
        """Exit code, and what was still said."""
        self._process.send_signal(signal.SIGTERM)
        rest = self._process.stderr.read() if self._process.stderr else ""
        return self._process.wait(10), rest.splitlines()


@contextmanager
def running(*typed: str, **variables: str) -> Iterator[Running]:
    command = [sys.executable, "-m", "podium", "extender", "--no-watch", *typed]
    environment = {**os.environ, **podium_environment(), **variables}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            lines: list[str] = []
            assert process.stderr is not None
            for line in process.stderr:
                lines.append(line.rstrip())
                if "podium extender answers" in line:
                    break
            yield Running(process, lines)
        finally:
            process.kill()


QUESTION = args(make_pod(), nodes=[node("n", {"congestion-factor": "5"})])


def points(answer: tuple[int, bytes]) -> Any:
    return [each["Score"] for each in json.loads(answer[1])]


def test_each_agent_may_have_a_port_of_its_own_and_a_signal_ends_it() -> None:
    with running("--agents", "congestion,safe", "--ports", "0,0", CONGESTION_FACTOR_MAX="10") as extender:
        first, second = extender.ports
        assert points(extender.ask(first, "/congestion/prioritize", QUESTION)) == [5]
        assert points(extender.ask(first, "/prioritize", QUESTION)) == [5]
        assert extender.ask(first, "/safe/filter", QUESTION)[0] == 404
        assert json.loads(extender.ask(second, "/safe/filter", QUESTION)[1])["Error"] == ""
        assert extender.ask(second, "/readyz") == (200, b"ok")
        code, rest = extender.stop()
    assert code == 0
    assert any("stopping: finishing what is under way" in line for line in rest)


def test_agents_port_and_level_come_from_the_environment() -> None:
    """And the log may be JSON, one object a line, with what the line is about."""
    with running("--log-format", "json", AGENTS="congestion", HTTP_PORT="0", LOG_LEVEL="Debug") as extender:
        [port] = extender.ports
        extender.ask(port, "/prioritize", QUESTION)
        extender.ask(port, "/prioritize", b"nonsense")
        code, rest = extender.stop()
    assert code == 0
    entries = [json.loads(line) for line in (*extender.lines, *rest)]
    debug = next(entry for entry in entries if entry["level"] == "debug" and "agent" in entry)
    assert (debug["agent"], debug["verb"], debug["status"], debug["bytes"]) == (
        "congestion",
        "prioritize",
        200,
        len(QUESTION),
    )
    warning = next(entry for entry in entries if entry["level"] == "warning")
    assert (warning["verb"], warning["error"][:24]) == ("prioritize", "the request is not JSON:")

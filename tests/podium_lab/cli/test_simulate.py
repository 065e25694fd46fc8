"""podium simulate: what may be typed, what is printed, what is written, and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.podium.cli.command import podium
from tests.podium_lab.simulator.scenarios import EXAMPLES, SMALL

TWO = SMALL + "profiles:\n- {name: a}\n- {name: b}\nseeds: 1-2\n"


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    return file


def test_a_summary_is_printed_and_files_are_written(scenario: Path) -> None:
    ran = podium("simulate", str(scenario))
    assert ran.code == 0, ran.err
    assert "4 runs, 240 pods" in ran.out
    written = {path.name for path in Path("two-results").iterdir()}
    assert {"results.csv", "waits.csv", "unplaced.csv", "report.html"} <= written


def test_json_is_a_list_of_rows_and_writes_nothing(scenario: Path) -> None:
    ran = podium("simulate", str(scenario), "--json", "--profiles", "b", "--seeds", "3", "--set", "generate.count=20")
    rows = json.loads(ran.out)
    assert {(row["profile"], row["seed"]) for row in rows} == {("b", 3)}
    assert rows[-1]["ended"] == 20
    assert not Path("two-results").exists()


@pytest.mark.parametrize("form", [("-o", "json"), ("-o", "yaml"), ("--json", "-o", "json")])
def test_every_form_of_the_data_is_the_same_data(scenario: Path, form: tuple[str, ...]) -> None:
    asked = ("simulate", str(scenario), "--profiles", "b", "--seeds", "3,5")
    rows = json.loads(podium(*asked, "--json").out)
    assert {row["seed"] for row in rows} == {3, 5}
    assert yaml.safe_load(podium(*asked, *form).out) == rows
    assert podium(*asked, "--json", "-o", "yaml").err.startswith("--json and -o yaml contradict each other")


def test_openb_rows_have_what_the_published_table_has(scenario: Path) -> None:
    ran = podium("simulate", str(EXAMPLES / "simulate" / "openb-sample.yaml"), "--json", "--seeds", "1")
    rows = json.loads(ran.out)
    assert {"profile", "seed", "arrived_pct", "gpu_allocation_pct"} <= set(rows[0])
    assert 0 < rows[-1]["gpu_allocation_pct"] <= 100


def test_another_list_may_be_given_by_any_name(scenario: Path) -> None:
    other = Path("other-list.txt")
    other.write_text((EXAMPLES / "traces" / "openb-pods.csv").read_text())
    sample = str(EXAMPLES / "simulate" / "openb-sample.yaml")
    for override in ("list=other-list.txt", f"list={other.absolute()}"):
        assert podium("simulate", sample, "--check", "--set", override).code == 0


def test_check_reads_every_file(scenario: Path) -> None:
    ran = podium("simulate", str(scenario), "--check")
    assert (ran.code, ran.out.strip()) == (0, f"{scenario}: fine: 4 nodes, 60 pods in the first run, 4 runs")
    Path("pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,x,1,0,0\n")
    ran = podium("simulate", str(scenario), "--check", "--set", "workload=pods.csv")
    assert ran.code == 2
    assert 'pods.csv:2: column 2 (cpu_milli): expected a whole number of 0 or more, got "x"' in ran.err


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("nowhere.yaml",), "nowhere.yaml"),
        (("two.yaml", "--profiles", "c"), 'there is no profile "c"'),
        (("two.yaml", "--seeds", "x"), "are no seeds"),
        (("two.yaml", "--set", "x"), "write it as KEY=VALUE"),
        (("two.yaml", "--set", "workload=none.csv"), "none.csv: no such file"),
        ((), "Missing argument"),
        (("bad.yaml",), "bad.yaml:1:1: expected a mapping"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(scenario: Path, args: tuple[str, ...], expected: str) -> None:
    Path("bad.yaml").write_text("[]\n")
    ran = podium("simulate", *args)
    assert ran.code == 2
    assert expected in ran.err
    assert "Traceback" not in ran.err


def test_the_schema_is_printed(scenario: Path) -> None:
    assert "$defs" in json.loads(podium("simulate", "--schema").out)


def cpu_seconds(pid: int) -> float:
    """How long a process has been working."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_an_interrupt_leaves_what_is_finished(scenario: Path) -> None:
    command = [sys.executable, "-m", "podium", "simulate", str(scenario), "--seeds", "1-2000", "--out", "part"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that run in the background may ignore the signal, and what they start does then, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  (no thread is running yet)
    ) as process:
        try:
            while process.poll() is None and cpu_seconds(process.pid) < 4:  # importing takes one
                time.sleep(0.2)
            os.kill(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 1, errors
    assert "interrupted: " in errors
    assert "Traceback" not in errors
    rows = Path("part/results.csv").read_text().splitlines()
    assert len(rows) > 10
    assert len({row.count(",") for row in rows}) == 1


def test_a_folder_that_cannot_be_made_is_told_before_anything_runs(scenario: Path) -> None:
    Path("taken").write_text("")
    for out in ("taken/results", "taken", "/proc/results", "/proc"):
        ran = podium("simulate", str(scenario), "--out", out)
        assert (ran.code, ran.out) == (2, "")
        assert re.match(rf"{out}\S*: cannot be written: ", ran.err), ran.err

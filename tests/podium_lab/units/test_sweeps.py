"""A sweep in a store: parts, resumption, poisoned results and status, as a user meets them."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

import pytest

from podium_lab.simulator import simulate
from podium_lab.units.store import open_store
from tests.podium.cli.command import podium
from tests.podium_lab.units.sweeps import TEXT, command, finished, results, stored


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("two.yaml").write_text(TEXT)
    return "two.yaml"


def sweep(*arguments: str) -> str:
    ran = podium("simulate", *arguments)
    assert ran.code == 0, ran.err
    return ran.err


def tally(errors: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(errors.splitlines()[-1])
    return found


def test_parts_and_the_whole_write_the_same_bytes(scenario: str) -> None:
    sweep(scenario, "--out", "plain")
    for part in ("2/3", "1/3", "3/3"):
        sweep(scenario, "--store", "store", "--units", part)
    assert not Path("two-results").exists(), "a part writes no results"
    last = tally(sweep(scenario, "--store", "store", "--out", "parts"))
    assert (last["skipped"], last["done"]) == (10, 0)
    assert results(Path("plain")) == results(Path("parts"))


def test_what_is_there_is_kept_when_a_scenario_grows(scenario: str) -> None:
    sweep(scenario, "--store", "store", "--out", "one")
    Path(scenario).write_text(
        TEXT.replace("seeds: 1-5", "- {name: c}\nseeds: 1-6").replace("nodes:", "name: x\nnodes:")
    )
    last = tally(sweep(scenario, "--store", "store", "--out", "two"))
    assert (last["units"], last["skipped"]) == (18, 10), "another profile and another seed change nothing else"
    Path(scenario).write_text(TEXT.replace("count: 4,", "count: 5,"))
    assert tally(sweep(scenario, "--store", "store", "--out", "three"))["skipped"] == 0


def test_inputs_count_by_what_they_hold(scenario: str) -> None:
    rows = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(f"p{i},1000,512,0,0\n" for i in range(20))
    Path("pods.csv").write_text(rows)
    Path(scenario).write_text("nodes: {count: 4, allocatable: {cpu: 4, memory: 8Gi}}\nworkload: pods.csv\n")
    sweep(scenario, "--store", "store", "--out", "one")
    Path("elsewhere").mkdir()
    Path("elsewhere/pods.csv").write_text(rows)
    again = tally(sweep(scenario, "--data", "elsewhere", "--store", "store", "--out", "two"))
    assert again["skipped"] == 1, "where a file lies is no part of a unit"
    Path("pods.csv").write_text(rows + "last,1000,512,0,0\n")
    assert tally(sweep(scenario, "--store", "store", "--out", "three"))["skipped"] == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_poisoned_store_is_found_named_and_run_again(scenario: str, seed: int) -> None:
    sweep(scenario, "--store", "store", "--out", "clean")
    before = stored(Path("store"))
    draw = random.Random(seed)
    names = draw.sample(sorted(before), 5)
    cut, swapped, foreign, flipped, gone = (Path("store") / name for name in names)
    cut.write_bytes(cut.read_bytes()[: draw.randrange(len(before[names[0]]))])
    swapped.write_bytes(before[names[4]])
    foreign.write_bytes(draw.randbytes(300))
    content = bytearray(flipped.read_bytes())
    content[draw.randrange(len(content))] ^= 1
    flipped.write_bytes(bytes(content))
    gone.unlink()
    ran = podium("simulate", "status", "store")
    assert ran.code == 1
    assert "to finish" in ran.out
    errors = sweep(scenario, "--store", "store", "--out", "mended")
    assert all(str(path) in errors for path in (cut, swapped, foreign, flipped))
    last = tally(errors)
    assert (last["damaged"], last["done"], last["skipped"]) == (4, 5, 5)
    assert stored(Path("store")) == before
    assert results(Path("mended")) == results(Path("clean"))
    assert podium("simulate", "status", "store").code == 0


def test_status_says_what_is_left_as_a_table_and_as_data(scenario: str) -> None:
    sweep(scenario, "--store", "store", "--units", "1/5")
    ran = podium("simulate", "status", "store", "-o", "json")
    found = json.loads(ran.out)
    assert (ran.code, found["complete"]) == (1, False)
    (plan,) = found["plans"]
    assert (plan["units"], plan["done"], plan["left"], plan["damaged"]) == (10, 2, 8, [])
    assert plan["command"] == "podium simulate two.yaml --profiles a,b --seeds 1-5 --store store"
    table = podium("simulate", "status", "store").out
    assert "simulate a, simulate b" in table
    assert all(len(line) <= 80 for line in table.splitlines() if "to finish" not in line)
    settings = next(Path("store/inputs").iterdir())
    settings.write_bytes(b"{}")
    assert "does not match its name" in podium("simulate", "status", "store").out


def test_a_scenario_called_status_is_run_by_its_path(scenario: str) -> None:
    Path("status").write_text(TEXT)
    assert podium("simulate", "./status", "--check").code == 0
    assert "name the store" in podium("simulate", "status").err
    assert "nowhere: there is no such folder" in podium("simulate", "status", "nowhere").err


def test_an_estimate_runs_two_units_and_keeps_them(scenario: str) -> None:
    found = json.loads(
        podium("simulate", scenario, "--estimate", "--store", "store", "--workers", "4", "-o", "json").out
    )
    assert (found["units"], found["done"], found["workers"], len(found["trials"])) == (10, 2, 4, 2)
    assert found["seconds"] == pytest.approx(found["coreSeconds"] / 4, abs=0.1)
    assert tally(sweep(scenario, "--store", "store", "--out", "all"))["skipped"] == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--units", "1/2"), "--units 1/2: give --store"),
        (("--units", "3/2", "--store", "s"), "--units 3/2: is no part"),
        (("--units", "0/2", "--store", "s"), "write i/n, such as 1/8"),
        (("--engine", "kubernetes"), "--engine kubernetes: give --store"),
        (("--engine", "kubernetes", "--store", "s"), "give --image"),
        (("--engine", "ray", "--units", "1/2", "--store", "s"), "ray shares the units out itself"),
        (("--store", "nothing://x"), "--store nothing://x: "),
        (("other.yaml",), "one scenario is run at a time"),
    ],
)
def test_options_that_do_not_go_together_are_one_sentence(
    scenario: str, arguments: tuple[str, ...], expected: str
) -> None:
    ran = podium("simulate", scenario, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.long
def test_a_plugin_file_and_the_files_of_arguments_are_inputs(scenario: str) -> None:
    Path("quiet.py").write_text(
        "import numpy as np\nfrom podium import Plugin\n\n\n"
        "class Quiet(Plugin):\n    name = 'Quiet'\n\n    def score_node(self, cycle, node):\n        return 7\n"
    )
    profile = "profiles: [{name: q, profile: {plugins: {score: {enabled: [{name: Quiet}]}}}}]\n"
    Path(scenario).write_text(TEXT.partition("profiles:")[0] + profile)
    given = (scenario, "--plugin", "quiet.py", "--store", "store")
    assert tally(sweep(*given, "--out", "one"))["done"] == 1
    assert tally(sweep(*given, "--out", "two"))["skipped"] == 1
    Path("quiet.py").write_text(Path("quiet.py").read_text().replace("return 7", "return 8"))
    assert tally(sweep(*given, "--out", "three"))["skipped"] == 0


def test_the_python_interface_takes_a_store(scenario: str) -> None:
    first = simulate(scenario, store="store")
    again = simulate(scenario, store="store")
    assert [run.table.tobytes() for run in first.runs] == [run.table.tobytes() for run in again.runs]
    assert len(open_store("store").present()) == 10
    assert [run.seed for run in again.runs[2:4]] == [3, 4]


@pytest.mark.long
def test_workers_leave_no_copies_behind(scenario: str) -> None:
    Path("plug").mkdir()
    Path("plug/quiet.py").write_text(
        "from podium import Plugin\n\n\nclass Quiet(Plugin):\n    name = 'Quiet'\n\n"
        "    def filter_node(self, cycle, node):\n        return None\n"
    )
    arguments = command(Path(scenario), "--plugin", "plug/quiet.py", "--workers", "2", "--store", "s", "--out", "o")
    with tempfile.TemporaryDirectory(prefix="t") as temporary:  # short: the path of a socket may have 107 characters
        assert finished(arguments, {"TMPDIR": temporary})["done"] == 10
        assert not list(Path(temporary).glob("podium-*"))

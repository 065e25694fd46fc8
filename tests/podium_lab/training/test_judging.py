"""Policies on held-out episodes of the engine: paired, and refused where they were trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from podium_lab.models.scorer_file import ScorerOrigin, onnx_of
from podium_lab.models.set_scorer import initial_weights
from podium_lab.simulator.reading import load_scenario
from podium_lab.training.judging import judged, paired
from tests.podium.cli.command import podium
from tests.podium_lab.simulator.scenarios import SMALL

OTHERS = ("least-allocated", "random")
OBJECTIVE = ("--objective", "least-allocated", "--seeds", "42-43")


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL.replace("count: 60", "count: 20"))
    return str(path)


@pytest.fixture
def scorer(tmp_path: Path) -> str:
    pytest.importorskip("onnx")
    path = tmp_path / "drawn.onnx"
    seen = '{"seedsSeen": [[900000, 900031], [1010000, 1010255]]}'
    path.write_bytes(onnx_of(initial_weights(np.random.default_rng(1)), ScorerOrigin(evaluation=seen)))
    return str(path)


def rows(*arguments: str) -> Any:
    found = podium("evaluate", *arguments, "-o", "json")
    assert (found.code, found.err) == (0, "")
    return msgspec.json.decode(found.out)


def test_a_heuristic_is_judged_against_others_on_the_same_seeds(scenario: str) -> None:
    found = rows("least-allocated", *OBJECTIVE, "--scenario", scenario, "--against", "random")
    assert [(row["policy"], row["seed"]) for row in found] == [
        ("least-allocated", 42), ("random", 42), ("least-allocated", 43), ("random", 43)
    ]  # fmt: skip
    assert all(row["placed"] + row["unplaced"] == 20 for row in found)
    total = {name: sum(row["reward"] for row in found if row["policy"] == name) for name in OTHERS}
    assert total["least-allocated"] > total["random"]


def test_a_file_is_judged_and_its_table_says_what_differs(scenario: str, scorer: str) -> None:
    found = podium("evaluate", scorer, *OBJECTIVE, "--scenario", scenario, "--against", "least-allocated")
    assert found.code == 0
    assert "least-allocated" in found.out
    assert "paired over 2 seeds" in found.out
    assert max(map(len, found.out.splitlines()[3:])) <= 80


def test_seeds_that_a_file_was_trained_on_are_refused(scenario: str, scorer: str) -> None:
    found = podium("evaluate", scorer, "--objective", "least-allocated", "--seeds", "1010003", "--scenario", scenario)
    assert (found.code, found.out) == (2, "")
    assert "was trained or chosen on seed 1010003; judge it by others" in found.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no.onnx", "--objective", "least-allocated"), "no.onnx: no such policy; write an .onnx file, the URL of a"),
        (("random", "--objective", "tidy"), '--objective: there is no objective "tidy"; write one of least-allocated'),
        (("random", "--objective", "least-allocated", "--scenario", "none.yaml"), "none.yaml: No such file"),
        (("--objective", "least-allocated"), "POLICY is missing"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], message: str) -> None:
    found = podium("evaluate", *arguments)
    assert (found.code, found.out) == (2, "")
    assert message in found.err
    assert found.err.count("\n") == 1


def test_a_server_is_judged_by_its_answers(scenario: str) -> None:
    from tests.podium_lab.training.scoring_server import scoring_server

    with scoring_server(best="last") as url:
        by_server = rows(f"{url}/v2/models/any", *OBJECTIVE, "--scenario", scenario, "--against", "")
    loaded = load_scenario(Path(scenario).read_text(), scenario)
    assert len(by_server) == 2
    assert all(row["placed"] == 20 for row in by_server)
    heuristic = list(judged(loaded, "most-allocated", ("most-allocated",), (42, 43), 1))
    assert paired(heuristic, "most-allocated") == []

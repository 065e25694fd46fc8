"""The benchmark of simulations, in small."""

import msgspec
import pytest

from tests.podium.cli.command import podium
from tools.bench.report import simulation_table, to_json
from tools.bench.simulation import SimulationFailedError, measure_generated, measure_scenario

SAMPLE = "examples/simulate/azure-sample.yaml"


@pytest.mark.long
def test_generated_pods_that_stay_and_that_end_are_measured() -> None:
    heard: list[tuple[str, bool]] = []
    stay, end = measure_generated(5, 60, lambda text, done: heard.append((text, done)))
    assert (stay.scenario, stay.placed, end.scenario, end.placed) == ("5 nodes, pods stay", 60, "5 nodes, pods end", 60)
    assert min(stay.cpu_s, stay.seconds, stay.placements_per_s, stay.peak_mb, end.placements_per_s) > 0
    assert sum(done for _, done in heard) == 2
    assert simulation_table([stay, end]).row_count == 2
    assert msgspec.json.decode(to_json([stay], None))["workloads"][0]["placed"] == 60


@pytest.mark.long
def test_a_scenario_is_measured_by_profile_and_seed() -> None:
    result = podium("bench", "simulate", SAMPLE, "--seeds", "1-2", "--json")
    assert result.code == 0, result.err
    rows = msgspec.json.decode(result.out)["workloads"]
    assert [(row["profile"], row["seed"]) for row in rows] == [("default", 1), ("default", 2)]
    assert all(row["placed"] > 0 for row in rows)


def test_a_scenario_that_is_not_there_is_one_sentence() -> None:
    result = podium("bench", "simulate", "nowhere.yaml")
    assert result.code == 2
    assert "nowhere.yaml" in result.err
    assert "Traceback" not in result.err


def test_a_simulation_that_fails_says_why() -> None:
    with pytest.raises(SimulationFailedError, match="no profile"):
        measure_scenario(SAMPLE, None, (), [("unknown", 1)], lambda _text, _done: None)

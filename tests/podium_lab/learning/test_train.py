"""Training: the same seed gives the same bytes, whatever the workers and however often it was stopped."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")

from podium_lab.learned.policy_file import Calibration, decoded, encoded, path_of, read_policy
from podium_lab.learning.cma_es import Search, advance, begin, candidates
from podium_lab.learning.extra import LearningError
from podium_lab.learning.forms import FORMS, NETWORKS, READABLE
from podium_lab.learning.policy_making import DIGITS, make_policy
from podium_lab.learning.train import SavedSearch, Training, train
from podium_lab.learning.training_units import StoredSearch, UnitFigures
from podium_lab.units.run import EngineOptions, UnitPart, UnitRunner
from podium_lab.units.store import open_store
from podium_plugins.gpu.terms import GROUPS, MEANINGLESS, TERMS
from tests.podium_lab.learning.lists import write_lists

pytestmark = pytest.mark.long  # compiling takes most of the time


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lists(tmp_path_factory.mktemp("lists"))


def settings(data: Path, form: str = "S1", generations: int = 3) -> Training:
    return Training(form, 1, str(data), ("made", "gpuspec33"), generations, 6)


def by_units(training: Training, folder: Path, workers: int = 2, part: UnitPart = UnitPart()) -> Search:  # noqa: B008  a constant
    """The search with each candidate a unit of a store."""
    options = EngineOptions(workers=workers, part=part)
    with UnitRunner(open_store(str(folder)), options) as runner:
        return train(training, figures_of=UnitFigures(runner, "train", part))


def test_the_same_seed_gives_the_same_weights_as_units_in_several_processes(data: Path, tmp_path: Path) -> None:
    here = train(settings(data)).result.tobytes()
    assert by_units(settings(data), tmp_path / "two").result.tobytes() == here
    plain = tmp_path / "elsewhere"
    plain.mkdir()
    for file in data.iterdir():
        (plain / file.name).write_bytes(file.read_bytes())
    before = len(open_store(str(tmp_path / "two")).present())
    assert by_units(settings(plain), tmp_path / "two", 1).result.tobytes() == here
    assert len(open_store(str(tmp_path / "two")).present()) == before == 18, "where lists lie is no part of a unit"


def test_parts_of_a_training_share_its_generations(data: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as parts:
        found = list(parts.map(lambda part: by_units(settings(data), tmp_path, 1, UnitPart(part, 2)), (1, 2)))
    assert {each.result.tobytes() for each in found} == {train(settings(data)).result.tobytes()}


def test_a_search_is_gone_on_with_from_the_store_alone(data: Path, tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "store"))
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    seen: list[int] = []
    train(settings(data), StoredSearch(tmp_path / "one" / "S1-1.search", store))
    elsewhere = StoredSearch(tmp_path / "two" / "S1-1.search", store)
    train(settings(data), elsewhere, progress=lambda generation, _mean, _best: seen.append(generation))
    assert not seen


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(data: Path, tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop(generation: int, _mean: float, _best: float) -> None:
        if generation == 2:
            raise StoppedError

    saved = SavedSearch(tmp_path / "search")
    with pytest.raises(StoppedError):
        train(settings(data), saved, progress=stop)
    seen: list[int] = []
    found = train(settings(data), saved, progress=lambda generation, _mean, _best: seen.append(generation))
    assert seen == [3]
    assert found.result.tobytes() == train(settings(data)).result.tobytes()
    with pytest.raises(LearningError, match="has 3 generations already"):
        train(settings(data, generations=2), saved)
    longer = train(settings(data, generations=4), saved, progress=lambda number, _mean, _best: seen.append(number))
    assert seen == [3, 4]
    assert longer.result.tobytes() == train(settings(data, generations=4)).result.tobytes()
    with pytest.raises(LearningError, match="other settings"):
        train(settings(data)._replace(mixes=1), saved)
    saved.write(b"{}")
    with pytest.raises(LearningError, match="is no search"):
        train(settings(data), saved)


def test_what_is_trained_by_both_protocols_is_a_policy(data: Path) -> None:
    found = train(settings(data, "J", 1))
    weights = FORMS["J"].weights(found.result)
    provenance = {"command": "test", "seeds": [1000], "budget": "1"}
    policy = make_policy("J-1", weights, Calibration(50.0, 25.0), data, ("made",), provenance)
    assert decoded(encoded(policy), "it").trained_on.models == ("G2", "P100", "T4")


def test_a_network_is_trained_as_a_correction_of_a_policy(data: Path, tmp_path: Path) -> None:
    given = settings(data, "N", 1)
    with pytest.raises(LearningError, match="a network corrects a policy; write --start"):
        train(given)
    start = read_policy(path_of("readable")).matrix()
    given = given._replace(start=tuple(map(tuple, start.tolist())))
    begun = NETWORKS["N"].start(1)
    network = given.scorer(begun).network
    assert network is not None
    assert not network.corrections(np.ones((len(TERMS), 3)), 1).any(), "it starts as the policy that it corrects"
    assert network.first.any()
    found = train(given)
    assert found.result.tobytes() == by_units(given, tmp_path).result.tobytes()
    assert found.result.tolist() != begun.tolist()
    provenance = {"command": "test", "seeds": [1000], "budget": "1"}
    written = NETWORKS["N"].network(found.result, DIGITS)
    policy = make_policy("N-1", start, Calibration(50.0, 25.0), data, ("made",), provenance, network=written)
    assert decoded(encoded(policy), "it").network == written


@pytest.mark.parametrize(("form", "numbers"), [("S1", 5), ("S2", 8), ("A", 34), ("C", 20), ("J", 20)])
def test_forms_have_as_many_numbers_as_they_say(form: str, numbers: int) -> None:
    assert len(FORMS[form].numbers()) == numbers


@pytest.mark.parametrize("form", FORMS)
def test_numbers_and_weights_of_a_form_agree(form: str) -> None:
    given = FORMS[form]
    numbers = np.random.default_rng(1).normal(size=len(given.numbers()))
    weights = given.weights(numbers)
    assert given.numbers(weights).tolist() == numbers.tolist()
    for g, group in enumerate(GROUPS):
        assert not any(weights[g, TERMS.index(term)] for term in MEANINGLESS[group])


@pytest.mark.parametrize("diagonal", [False, True])
def test_the_search_finds_the_top_of_a_hill(diagonal: bool) -> None:
    top = np.array([0.5, -1.0, 2.0, 0.0])
    search = begin(np.zeros(4), np.ones(4), 0.3, 12, seed=3, diagonal=diagonal)
    for _ in range(120):
        tried = candidates(search)
        search = advance(search, tried, -((tried - top) ** 2 * [1, 10, 3, 1]).sum(axis=1))
    assert search.result == pytest.approx(top, abs=0.01)


def test_the_readable_policy_that_ships_has_the_weights_that_are_written_down() -> None:
    found = read_policy(path_of("readable")).weights
    assert found["severalGpus"] == READABLE
    assert found["cpuOnly"] == {term: weight for term, weight in READABLE.items() if term != "price"}

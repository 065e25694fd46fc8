"""Trains a policy: CMA-ES over runs of the kernel, generation by generation, on lists and mixes of them.

Every candidate of a generation gets the same seed (1000 + generation mod 400, of churn mod 300), the same lists and
ties drawn for each pod, so that candidates differ by what they are and not by luck. Static: every other list in turn,
and some mixes of the others. Churn: a list with times and a mix of another, in turn, at loads 0.95, 1.00 and 1.05. A
run has every third node of each type and as many fewer pods: it takes a ninth of the time, and gives candidates the
same order.

After each generation the search is written down; started again with the same settings it goes on from there. What
comes out depends on the settings and the seed alone, not on the number of workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from podium.kube.documents import FILE, DocumentError, read_json
from podium_lab.learned.network import PlacementNetwork
from podium_lab.learning.cma_es import Search, advance, begin, candidates
from podium_lab.learning.extra import LearningError
from podium_lab.learning.forms import FORMS, NETWORKS, NetworkForm, ScoreForm
from podium_lab.learning.kernel import KernelPlan, Scorer, Workload
from podium_lab.learning.kernel_state import Floats, KernelNode
from podium_lab.learning.lists import PodList, find_list, find_nodes, mix, node_specs, static_plan
from podium_lab.learning.protocols import ChurnPlan, churn_plan, run_churn_plan, static_figure

FIRST_SEED, STATIC_SEEDS, CHURN_SEEDS = 1000, 400, 300
MIXES = 400
EVERY_NODE = 3
"""One of so many nodes takes part in a run."""
STATIC_MIXES, CHURN_MIXES = 3, 1
"""How many mixes there are of each list, and how many a generation takes."""
LOADS = (0.95, 1.0, 1.05)
OFFSET, SCALE = 50.0, 25.0


class Training(NamedTuple):
    """The settings of a training: what comes out depends on these alone."""

    form: str
    seed: int
    data: str
    lists: tuple[str, ...]
    generations: int
    population: int
    start: tuple[tuple[float, ...], ...] | None = None
    """Weights to start from, or that a network corrects; None: the form's own."""
    mixes: int = STATIC_MIXES
    """Mixes that a static generation takes."""
    sigma: float = 0.0
    """How far the first candidates are spread; 0: as the form says."""

    @property
    def the_form(self) -> ScoreForm | NetworkForm:
        return FORMS[self.form] if self.form in FORMS else NETWORKS[self.form]

    def scorer(self, numbers: Floats) -> Scorer:
        """The score that some numbers stand for."""
        form = self.the_form
        if isinstance(form, ScoreForm):
            return Scorer(form.weights(numbers), OFFSET, SCALE)
        return Scorer(np.array(self.start), OFFSET, SCALE, PlacementNetwork(form.network(numbers)))


class WeightsTrial(NamedTuple):
    """Some candidates to be tried in a generation."""

    training: Training
    generation: int
    numbers: tuple[Floats, ...]


Progress = Callable[[int, float, float], None]
"""Called after each generation with its number, and the mean and the best figure of its candidates."""


Figures = Callable[[Training, int, Floats], Floats]
"""Tries all candidates of a generation: their figures, in order."""


def tried_here(training: Training, generation: int, tried: Floats) -> Floats:
    """The figures of all candidates, found in this process."""
    return try_out(WeightsTrial(training, generation, tuple(tried)))


def train(
    training: Training,
    saved: SavedSearch | None = None,
    figures_of: Figures = tried_here,
    progress: Progress = lambda _generation, _mean, _best: None,
) -> Search:
    """Search to the end, from where `saved` says an earlier one stopped."""
    if training.form in NETWORKS and training.start is None:
        raise LearningError(f"--form {training.form}: a network corrects a policy; write --start and its name")
    if "churn" in training.the_form.protocols and not any(_list(training.data, name).timed for name in training.lists):
        raise LearningError(f"--form {training.form}: is trained by churn, and no list has deletion times")
    search = _resumed(training, saved) or begun(training)
    while search.generation < training.generations:
        tried = candidates(search)
        figures = figures_of(training, search.generation, tried)
        search = advance(search, tried, figures)
        if saved is not None:
            _save(training, search, saved)
        progress(search.generation, float(figures.mean()), float(figures.max()))
    return search


def try_out(trial: WeightsTrial) -> Floats:
    """The figure of each candidate: mean allocation in percent."""
    training, generation = trial.training, trial.generation
    protocols = training.the_form.protocols
    total = np.zeros(len(trial.numbers))
    scorers = [training.scorer(numbers) for numbers in trial.numbers]
    if "static" in protocols:
        seed = FIRST_SEED + generation % STATIC_SEEDS
        names = _tried_on(training, generation, training.lists, 2, training.mixes)
        plans = [_static(training.data, name, seed) for name in names]
        for i, scorer in enumerate(scorers):
            total[i] += np.mean([static_figure(plan, scorer, "fresh", seed, known) for plan, known in plans])
    if "churn" in protocols:
        seed, load = FIRST_SEED + generation % CHURN_SEEDS, LOADS[generation % len(LOADS)]
        timed = [name for name in training.lists if _list(training.data, name).timed]
        names = _tried_on(training, generation // len(LOADS), timed, len(timed), min(training.mixes, CHURN_MIXES))
        churns = [_churn(training.data, name, seed, load) for name in names]
        for i, scorer in enumerate(scorers):
            runs = [run_churn_plan(plan, scorer, "fresh", seed, known, queue=False) for plan, known in churns]
            total[i] += np.mean([run.allocation for run in runs])
    return total / len(protocols)


def seeds_seen(training: Training) -> list[int]:
    """Every seed that the training has used."""
    most = max(STATIC_SEEDS if "static" in training.the_form.protocols else 0, CHURN_SEEDS)
    return [FIRST_SEED + i for i in range(min(training.generations, most))]


def _tried_on(training: Training, turn: int, lists: Sequence[str], turns: int, mixes: int) -> list[str]:
    """The lists whose turn it is, and mixes of the others."""
    own = [name for i, name in enumerate(lists) if i % turns == turn % turns] or list(lists)
    others = [name for name in lists if name not in own] or own
    numbers = np.random.default_rng([training.seed, turn, 9]).choice(MIXES, mixes, replace=False)
    return [*own, *(f"mix:{others[(turn + i) % len(others)]}:{number}" for i, number in enumerate(numbers))]


@lru_cache(maxsize=64)
def _list(data: str, name: str) -> PodList:
    if not name.startswith("mix:"):
        return find_list(name, Path(data))
    source, _, number = name.removeprefix("mix:").rpartition(":")
    given = _list(data, source)
    return PodList(name, given.path, mix(given.pods, int(number)))


@lru_cache(maxsize=64)
def _workload(data: str, name: str) -> Workload:
    return _list(data, name).workload


@lru_cache(maxsize=16)
def _static(data: str, name: str, seed: int) -> tuple[KernelPlan, Workload]:
    return static_plan(_nodes(data, seed), _list(data, name).pods, seed), _workload(data, name)


@lru_cache(maxsize=4)
def _churn(data: str, name: str, seed: int, load: float) -> tuple[ChurnPlan, Workload]:
    return churn_plan(_nodes(data, seed), _list(data, name), seed, load), _workload(data, name)


@lru_cache(maxsize=4)
def _nodes(data: str, seed: int) -> tuple[KernelNode, ...]:
    every = sorted(node_specs(find_nodes(Path(data))), key=lambda node: (node[1:], node.name))
    return tuple(every[seed % EVERY_NODE :: EVERY_NODE])


# What is written down


def begun(training: Training) -> Search:
    form = training.the_form
    sigma = training.sigma or form.sigma
    if isinstance(form, NetworkForm):
        numbers = form.start(training.seed)
        return begin(numbers, form.scale(), sigma, training.population, training.seed, diagonal=True)
    start = form.numbers(None if training.start is None else np.array(training.start))
    return begin(start, form.scale(), sigma, training.population, training.seed)


def _key(training: Training) -> str:
    """What a search depends on; more generations go on from where fewer ended."""
    return hashlib.sha256(msgspec.json.encode(training._replace(generations=0))).hexdigest()


class SavedSearch:
    """The file that a search is written to after each generation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None

    def write(self, content: bytes) -> None:
        partial = self.path.with_suffix(".partial")
        try:
            partial.write_bytes(content)
            partial.replace(self.path)
        except OSError as error:
            raise LearningError(
                f"{self.path}: cannot be written: {error.strerror}; give another place with --out"
            ) from None


def _save(training: Training, search: Search, saved: SavedSearch) -> None:
    written = {
        "training": _key(training),
        **{name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in search._asdict().items()},
    }
    saved.write(msgspec.json.encode(written))


def _resumed(training: Training, saved: SavedSearch | None) -> Search | None:
    content = None if saved is None else saved.read()
    if saved is None or content is None:
        return None
    path = saved.path
    try:
        written: dict[str, Any] = read_json(content, bounds=FILE)
        key = written.pop("training")
        arrays: dict[str, Any] = {
            name: np.array(each) if isinstance(each, list) else each for name, each in written.items()
        }
        search = Search(**arrays)
    except (DocumentError, KeyError, TypeError, AttributeError):
        raise LearningError(f"{path}: is no search of podium train; remove it to begin from the start") from None
    if key != _key(training):
        raise LearningError(f"{path}: is of a training with other settings; write another --out, or remove it")
    if search.generation > training.generations:
        raise LearningError(f"{path}: has {search.generation} generations already; write more, or another --out")
    return search

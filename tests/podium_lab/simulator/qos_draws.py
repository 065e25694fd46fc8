"""Draws workloads of the families of the published QoS experiments, and says whether their promises fit.

A family keeps what its files share: classes, SLOs, sizes, measuring approach and how controllers arrive. A seed draws
the mix of classes, their order, how much of the cluster is promised and what tasks Jobs have. Every draw has
contention, that is more pods than room, and promises that fit: a schedule that knows the future could keep them all.

    python -m tests.podium_lab.simulator.qos_draws --family exp3 --seeds 1-40 --each
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple

from podium_lab.simulator import simulate
from podium_plugins.qos.formulas import AGGREGATE, APPROACHES, AVERAGE, CONCURRENT, INDEPENDENT
from tests.podium_lab.simulator.scenarios import EXAMPLES

SCENARIO: Final = str(EXAMPLES / "qos.yaml")
HOUR: Final = 3600.0
START: Final = 2.33
"""Seconds from binding to running, in the mean."""
NOISE: Final = 0.0003
"""What a mean deficit may be off by because starts differ: 1 s of an hour."""
PER_NODE: Final = {1.7: 2, 0.85: 4, 0.75: 5, 0.375: 10}
"""Pods of so many cores that fit on a node of the scenario."""


class Drawn(NamedTuple):
    """One row of a workload."""

    at: int
    klass: str
    slo: float
    replicas: int
    approach: str
    tasks: int = 0
    """Of a Job."""
    task_s: int = 0


class Draw(NamedTuple):
    """A workload and the cluster it is for."""

    rows: tuple[Drawn, ...]
    nodes: int
    cores: float

    @property
    def slots(self) -> int:
        return self.nodes * PER_NODE[self.cores]

    def text(self) -> str:
        """The file that the QoS broker reads."""
        lines = []
        for number, row in enumerate(self.rows):
            kind = "job" if row.tasks else "deployment"
            size = f"{self.cores},{self.cores}"
            head = f"{row.at},{number},{number},any,0,0,7200,-1,{size},{row.klass},{row.slo}"
            lines.append(f"{head},{kind},{row.replicas},{row.tasks},{row.approach},,{row.task_s or ''}\n")
        return "".join(lines)

    @property
    def contends(self) -> bool:
        return sum(row.replicas for row in self.rows) > self.slots


def _spaced(rng: random.Random, rows: Sequence[Drawn], begin: int = 0) -> list[Drawn]:
    """The rows in any order, one a second."""
    mixed = rng.sample(rows, len(rows))
    return [row._replace(at=begin + second) for second, row in enumerate(mixed)]


def _fill(rng: random.Random, kinds: Sequence[tuple[Drawn, float]], room: float) -> list[Drawn]:
    """Controllers of kinds with weights until more would be promised than there is room for."""
    rows: list[Drawn] = []
    promised = 0.0
    while True:
        row = rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        promised += row.slo * row.replicas
        if promised > room:
            return rows
        rows.append(row)


def _exp1(approach: str) -> Callable[[random.Random], Draw]:
    def draw(rng: random.Random) -> Draw:
        replicas = rng.choice((2, 4, 8)) if approach == CONCURRENT else 4
        classes = (("prod", 1.0), ("batch", 0.95), ("free", 0.9))
        kinds = [(Drawn(0, name, slo, replicas, approach), rng.uniform(0.5, 1.5)) for name, slo in classes]
        return Draw(tuple(_spaced(rng, _fill(rng, kinds, 88 * rng.uniform(0.95, 1.0)), 1)), 22, 0.85)

    return draw


def _exp2(rng: random.Random) -> Draw:
    cores = rng.choice((0.85, 1.7))
    tasks, task_s = rng.choice(((800, 180), (800, 180), (8000, 30)))
    slots = 22 * PER_NODE[cores]
    bots = _fill(rng, [(Drawn(0, "free", 0.5, 4, AGGREGATE, tasks, task_s), 1.0)], slots * rng.uniform(0.4, 1.0))
    short = rng.choice((task_s, 60))
    others = [Drawn(0, "opportunistic", 0.0, 5, AGGREGATE, tasks, short)] * (slots // 14)
    return Draw(tuple(_spaced(rng, bots + others)), 22, cores)


def _exp2_more_bots(rng: random.Random) -> Draw:
    kinds = [
        (Drawn(0, "free", 0.5, 4, AGGREGATE, 800, 180), 3.0),
        (Drawn(0, "lower", 0.25, 4, AGGREGATE, 800, 180), 1.0),
    ]
    return Draw(tuple(_spaced(rng, _fill(rng, kinds, 88 * rng.uniform(0.55, 1.0)))), 22, 0.85)


def _exp3(rng: random.Random) -> Draw:
    service = [(Drawn(0, "prod", 1.0, 4, AVERAGE), 1.0), (Drawn(0, "batch", 0.9, 4, AVERAGE), rng.uniform(0.5, 1.5))]
    promised = 44 * rng.uniform(0.9, 1.1)
    first = _fill(rng, service, promised * rng.uniform(0.5, 0.9))
    left = promised - sum(row.slo * row.replicas for row in first)
    tasks, task_s = rng.choice((25, 50, 100)), rng.choice((60, 120, 180))
    jobs = _fill(rng, [(Drawn(0, "free", 0.5, 4, AGGREGATE, tasks, task_s), 1.0)], left)
    jobs += [Drawn(0, "opportunistic", 0.0, 4, AGGREGATE, 10, 30)] * rng.choice((0, 2, 3))
    return Draw((*_spaced(rng, first), *_spaced(rng, jobs, 1800)), 22, 1.7)


def _poc(rng: random.Random) -> Draw:
    classes = (("prod", 1.0), ("batch", 0.9), ("free", 0.5))
    kinds = [(Drawn(0, name, slo, 1, INDEPENDENT), rng.uniform(0.5, 1.5)) for name, slo in classes]
    nodes, cores = rng.choice(((2, 0.375), (2, 0.75), (10, 0.75)))
    room = nodes * PER_NODE[cores] * rng.uniform(0.85, 1.0)
    return Draw(tuple(_spaced(rng, _fill(rng, kinds, room))), nodes, cores)


def _sanity(rng: random.Random) -> Draw:
    """Each measured in its own way, on a few slots."""
    approach, nodes = rng.choice(APPROACHES), rng.choice((1, 2, 3))
    tasks = (9999, 120) if approach == AGGREGATE else (0, 0)
    kinds = [(Drawn(0, "free", 0.5, 2, approach, *tasks), 1.0)]
    return Draw(tuple(_spaced(rng, _fill(rng, kinds, 4 * nodes * rng.uniform(0.75, 1.0)), 1)), nodes, 0.85)


FAMILIES: Final[dict[str, Callable[[random.Random], Draw]]] = {
    "exp1-average": _exp1(AVERAGE),
    "exp1-independent": _exp1(INDEPENDENT),
    "exp1-concurrent": _exp1(CONCURRENT),
    "exp2": _exp2,
    "exp2-more-bots": _exp2_more_bots,
    "exp3": _exp3,
    "poc": _poc,
    "sanity": _sanity,
}


def draw(family: str, seed: int) -> Draw:
    """A workload of the family in which pods contend and all promises fit."""
    rng = random.Random(f"{family} {seed}")
    while True:
        drawn = FAMILIES[family](rng)
        if drawn.contends and fits(drawn):
            return drawn


def fits(drawn: Draw, end: float = HOUR, share: float = 1.0) -> bool:
    """Whether some schedule that knows the future keeps all promises in a share of the cluster.

    A controller needs SLO · replicas · (time it is there) of run time, at no more than its replicas at once, and the
    starts without which it cannot run: one for each pod, and for each task of a Job. A Job is there until its tasks
    have run, so it must have run them by `arrival + work / (SLO · parallelism)` where that is before the end. Between
    two such moments only the amounts matter, so this is a flow: from controllers with what they need, to the spans they
    are there in, with what these have room for.
    """
    needs: list[tuple[float, float, float, int]] = []
    for row in drawn.rows:
        until = end
        if row.tasks and row.slo:
            until = min(end, row.at + row.tasks * row.task_s / (row.slo * row.replicas))
        whole = row.replicas * (until - row.at)
        starts = row.slo * whole / row.task_s * START if row.tasks else row.replicas * START
        needs.append((row.at, until, min(row.slo * whole + starts, whole), row.replicas))
    moments = sorted({moment for begin, until, _, _ in needs for moment in (begin, until)})
    spans = list(pairwise(moments))
    room = [share * drawn.slots * (until - begin) for begin, until in spans]
    may = [
        [replicas * (b - a) if begin <= a and b <= until else 0.0 for a, b in spans]
        for begin, until, _, replicas in needs
    ]
    return most_met([need for _, _, need, _ in needs], may, room) >= sum(need for _, _, need, _ in needs) - 1e-3


def least_deficit(drawn: Draw, end: float = HOUR) -> float:
    """The mean deficit that the first start of each pod makes certain; all else that is promised fits."""
    lacks = (max(0.0, row.slo - 1 + START / (end - row.at)) for row in drawn.rows if not row.tasks)
    return sum(lacks) / len(drawn.rows)


def most_met(needs: Sequence[float], may: Sequence[Sequence[float]], room: Sequence[float]) -> float:
    """The largest flow from needs to rooms, along pairs that may have so much (augmenting paths, the shortest first).

    >>> most_met([10, 10], [[10, 0], [5, 4]], [12, 9])
    16.0
    """
    left, free, flow = list(needs), list(room), [[0.0] * len(room) for _ in needs]
    total = 0.0
    while True:
        parents: dict[tuple[str, int], tuple[str, int] | None] = {
            ("need", i): None for i, x in enumerate(left) if x > 1e-6
        }
        queue, found = deque(parents), None
        while queue and found is None:
            kind, i = here = queue.popleft()
            if kind == "room" and free[i] > 1e-6:
                found = here
                break
            if kind == "need":
                reached = [("room", j) for j in range(len(room)) if may[i][j] - flow[i][j] > 1e-6]
            else:
                reached = [("need", k) for k in range(len(needs)) if flow[k][i] > 1e-6]
            for there in reached:
                if there not in parents:
                    parents[there] = here
                    queue.append(there)
        if found is None:
            return total
        way = [found]
        while (before := parents[way[-1]]) is not None:
            way.append(before)
        way.reverse()
        amount = min(left[way[0][1]], free[found[1]])
        for (kind, i), (_, j) in pairwise(way):
            amount = min(amount, may[i][j] - flow[i][j] if kind == "need" else flow[j][i])
        for (kind, i), (_, j) in pairwise(way):
            if kind == "need":
                flow[i][j] += amount
            else:
                flow[j][i] -= amount
        left[way[0][1]] -= amount
        free[found[1]] -= amount
        total += amount


def compared(drawn: Draw, seed: int = 1, sets: Sequence[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures by priority and by QosAware."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "drawn.csv"
        file.write_text(drawn.text())
        given = [f"workload={file}", f"nodes.count={drawn.nodes}", *sets]
        default, promises = simulate(SCENARIO, seeds=str(seed), sets=given).rows()
    return default, promises


class Verdict(NamedTuple):
    """What a draw showed."""

    default: dict[str, Any]
    promises: dict[str, Any]
    least: float
    tight: bool
    """Whether the promises need more than 99 % of the cluster."""

    def above_least(self, figures: dict[str, Any]) -> float:
        return max(0.0, float(figures["mean_deficit"]) - self.least)

    def deficit_holds(self) -> bool:
        """At least five times lower than by priority."""
        return self.above_least(self.promises) <= max(self.above_least(self.default) / 5, NOISE)

    def met_holds(self) -> bool:
        return bool(self.promises["slo_met"] >= self.default["slo_met"])

    def gini_holds(self) -> bool:
        return bool(self.promises["gini"] <= self.default["gini"] + 0.01)


def judged(family: str, seed: int) -> Verdict:
    drawn = draw(family, seed)
    default, promises = compared(drawn)
    return Verdict(default, promises, least_deficit(drawn), not fits(drawn, share=0.99))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="all where none is named")
    parser.add_argument("--seeds", default="1-40")
    parser.add_argument("--each", action="store_true", help="a line for each draw too")
    given = parser.parse_args(arguments)
    first, _, last = given.seeds.partition("-")
    print(
        "two numbers: by priority, by QosAware; deficit: above the least; the last three: draws where each target holds"
    )
    print(
        LINE.format(
            "draws of", "n", "deficit", "", "SLO met", "", "Gini", "", "evicted", "", "ovh %", "5x", "met", "Gini"
        )
    )
    for family in given.family or FAMILIES:
        verdicts = []
        for seed in range(int(first), int(last or first) + 1):
            verdicts.append(judged(family, seed))
            if given.each:
                tell(f"{family} {seed}", verdicts[-1:])
        tell(family, verdicts)
        tell("  up to 99 %", [each for each in verdicts if not each.tight])
        tell("  above 99 %", [each for each in verdicts if each.tight])


LINE: Final = "{:17} {:>3} {:>8} {:>8} {:>6} {:>6} {:>6} {:>6} {:>5} {:>5} {:>5} {:>4} {:>4} {:>4}"


def tell(name: str, verdicts: Sequence[Verdict]) -> None:
    """Print the means."""
    if not verdicts:
        return
    sides = [[each.default for each in verdicts], [each.promises for each in verdicts]]
    texts = [f"{fmean(map(Verdict.above_least, verdicts, side)):.5f}" for side in sides]
    for column, form in (("slo_met", ".3f"), ("gini", ".4f"), ("preemptions", ".0f")):
        texts += [format(fmean(figures[column] for figures in side), form) for side in sides]
    texts.append(f"{100 * fmean(each.promises['preemption_overhead'] for each in verdicts):.2f}")
    for held in (Verdict.deficit_holds, Verdict.met_holds, Verdict.gini_holds):
        texts.append(str(sum(map(held, verdicts))))
    print(LINE.format(name, len(verdicts), *texts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

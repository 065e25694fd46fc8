"""Judges a policy against others on the same lists and seeds: one row per run, and paired differences.

A policy beats another where the 95 % interval of the paired difference lies above 0 and it is ahead on every seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from podium_lab.learned.policy_file import PolicyFile
from podium_lab.learning.extra import LearningError
from podium_lab.learning.kernel import RULES, KernelRun, Scorer
from podium_lab.learning.lists import find_list, find_nodes, node_specs, static_plan
from podium_lab.learning.protocols import allocation_at, churn_plan, run_churn_plan
from podium_lab.simulator.summary import Estimate, estimate

PERCENTS = (100, 130)
TIE_RULES = ("fixed", "fresh", "heap")
Row = dict[str, Any]


class Contestant(NamedTuple):
    """A policy or a published rule, by the name that rows have."""

    name: str
    rule: str | Scorer
    counted: bool = False
    """Whether it must count the pods it sees instead of knowing the list."""
    digest: str = ""
    """Of a policy: the SHA-256 of its content."""


class Question(NamedTuple):
    """What is to be judged on one list with one seed."""

    data: Path
    list: str
    seed: int
    contestants: tuple[Contestant, ...]
    ties: tuple[str, ...]
    loads: tuple[float, ...] = ()
    """Of the churn protocol; none: the static one."""
    queue: bool = False
    label: str = ""
    """What rows call the list; its own name where none is given."""


def scorer_of(policy: PolicyFile) -> Scorer:
    return Scorer(policy.matrix(), policy.calibration.offset, policy.calibration.scale, policy.correction())


def published(names: Iterable[str]) -> list[Contestant]:
    """Published rules by name; raises LearningError."""
    found = []
    for name in names:
        if name not in RULES:
            raise LearningError(f'--against: there is no rule "{name}"; write some of {", ".join(RULES)}')
        found.append(Contestant(name, name))
    return found


def refuse_seen(policy: PolicyFile, seeds: Sequence[int]) -> None:
    """Raises LearningError where a policy would be judged by seeds that it was trained or chosen on."""
    seen = sorted(policy.seeds & set(seeds))
    if seen:
        some = ", ".join(map(str, seen[:5]))
        raise LearningError(f"{policy.name}: was trained or chosen on seeds {some}; judge it by others, such as 42-51")


def answer(question: Question) -> list[Row]:
    """The rows of one list and seed."""
    return list(_churn(question) if question.loads else _static(question))


def _static(question: Question) -> Iterator[Row]:
    pods = find_list(question.list, question.data)
    specs, workload = node_specs(find_nodes(question.data)), pods.workload
    plan = static_plan(specs, pods.pods, question.seed)
    for contestant in question.contestants:
        for ties in question.ties:
            run = KernelRun(plan, contestant.rule, ties, question.seed)
            run.static(None if contestant.counted else workload)
            for percent, allocation in allocation_at(plan, run, PERCENTS).items():
                yield {
                    "list": question.label or pods.name,
                    "policy": contestant.name,
                    "seed": question.seed,
                    "ties": ties,
                    "arrived_pct": percent,
                    "gpu_allocation_pct": round(allocation, 4),
                }


def _churn(question: Question) -> Iterator[Row]:
    pods = find_list(question.list, question.data)
    specs, workload = node_specs(find_nodes(question.data)), pods.workload
    for load in question.loads:
        plan = churn_plan(specs, pods, question.seed, load)
        for contestant in question.contestants:
            for ties in question.ties:
                found = run_churn_plan(plan, contestant.rule, ties, question.seed, workload, queue=question.queue)
                yield {
                    "list": question.label or pods.name,
                    "policy": contestant.name,
                    "seed": question.seed,
                    "ties": ties,
                    "load": load,
                    "gpu_allocation_pct": round(found.allocation, 4),
                    "rejected_gpu_time_pct": round(found.rejected_gpu_time, 4),
                    "rejected_pods_pct": round(found.rejected_pods, 4),
                    "rejected_by_size_pct": {size: round(share, 3) for size, share in found.rejected_by_size.items()},
                    "wait_mean_s": round(found.wait_mean, 3),
                    "wait_max_s": round(found.wait_longest, 1),
                }


class Comparison(NamedTuple):
    """A policy against another on one list, at one percent or load."""

    list: str
    at: float
    ties: str
    mean: Estimate
    against: str
    difference: Estimate
    smallest: float

    @property
    def beats(self) -> bool:
        return self.smallest > 0 and self.difference.mean - self.difference.margin > 0


def compare(rows: Sequence[Row], policy: str, others: Sequence[str]) -> list[Comparison]:
    """Paired differences by seed. The others have the fixed tie rule, their good case, where that was run."""
    rows = [row for row in rows if "ties" in row]
    fixed = any(row["ties"] == "fixed" for row in rows)
    by_key = {(row["list"], row["policy"], row["ties"], at_of(row), row["seed"]): row for row in rows}
    cells = dict.fromkeys((row["list"], at_of(row), row["ties"]) for row in rows if row["policy"] == policy)
    found = []
    for name, at, ties in cells:
        own = {key[4]: row["gpu_allocation_pct"] for key, row in by_key.items() if key[:4] == (name, policy, ties, at)}
        for other in others:
            rule = "fixed" if fixed else ties
            theirs = {
                key[4]: row["gpu_allocation_pct"] for key, row in by_key.items() if key[:4] == (name, other, rule, at)
            }
            differences = [value - theirs[seed] for seed, value in own.items() if seed in theirs]
            if differences:
                mean, difference = estimate(list(own.values())), estimate(differences)
                found.append(Comparison(name, at, ties, mean, other, difference, min(differences)))
    return found


def at_of(row: Row) -> float:
    return float(row["arrived_pct"] if "arrived_pct" in row else row["load"])

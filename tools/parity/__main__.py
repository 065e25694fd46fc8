"""Compares Podium's decisions with kube-scheduler's on random clusters.

    python -m tools.parity --cases 300 --seed 7
    python -m tools.parity --seed 7 --only-cluster 12
    python -m tools.parity --seed 7 --theme devices            # clusters of one theme only
    python -m tools.parity --seed 7 --cases 300 --save-all     # write every case, not only those that differ
    python -m tools.parity --seed 7 --kubernetes 1.37          # kube-scheduler of another minor
    python -m tools.parity --replay build/parity               # ask Podium again, without kube-scheduler
    python -m tools.parity --groups --cases 100 --seed 1       # PodGroups, with kube-scheduler's gates on
    python -m tools.parity --record --kubernetes 1.35 --cases 2000    # keep what that kube-scheduler decides
    python -m tools.parity --recorded --kubernetes 1.35        # ask Podium about what was kept

Exit code 0: all equal; 1: some differ; 2: the comparison could not run.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from podium.kube.versions import find_rules
from tools.parity.case import Case, load_case, save_case
from tools.parity.compare import judge
from tools.parity.gen_cluster import ClusterPlan, make_cluster
from tools.parity.gen_groups import group_gates
from tools.parity.gen_pods import THEMES
from tools.parity.groups import GroupComparison, group_api
from tools.parity.podium_side import Answer
from tools.parity.real_side import Disturbed, RealSide
from tools.parity.recording import read_recording, recording_of, write_recording
from tools.parity.report import Tally
from tools.parity.shrink import shrink
from tools.testbed.availability import TestbedUnavailable
from tools.testbed.build import KUBERNETES, MINOR
from tools.testbed.cluster import ControlPlane

# Pods with user namespaces on the host network pass the API server only with this; the scheduler keeps its defaults.
APISERVER_FLAGS = ("--feature-gates=UserNamespacesHostNetworkSupport=true",)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.replay is not None:
        return _replay(options.replay)
    if options.recorded:
        return _compare_recorded(recording_of(options.kubernetes))
    try:
        if options.groups:
            return _compare_groups(options)
        with ControlPlane(kubernetes=options.kubernetes, apiserver_flags=APISERVER_FLAGS) as plane:
            comparison = Comparison(RealSide(plane, options.kubernetes), options)
            return _record(comparison, options) if options.record else comparison.run()
    except TestbedUnavailable as unavailable:
        print(f"parity: {unavailable}", file=sys.stderr)
        return 2


def _compare_groups(options: argparse.Namespace) -> int:
    only, rules = options.only_cluster, find_rules(options.kubernetes).rules
    indexes = itertools.count() if only is None else iter([only])
    with ControlPlane(
        kubernetes=options.kubernetes,
        feature_gates=dict.fromkeys(group_gates(rules), True),
        runtime_config={group_api(rules): True},
    ) as plane:
        return 0 if GroupComparison(plane, options.seed, options.verbose, rules).run(indexes, options.cases) else 1


class Comparison:
    """One run: clusters in order until there are enough cases."""

    def __init__(self, real: RealSide, options: argparse.Namespace) -> None:
        self._real = real
        self._options = options
        self._tally = Tally()
        self._differing: list[tuple[Case, list[str]]] = []
        self._began = time.monotonic()

    def run(self) -> int:
        for result in self._results():
            if isinstance(result, Disturbed):
                self._tally.disturbed[result.why] += 1
            else:
                self._judge(result)
            self._progress()
        self._finish_progress()
        for number, (case, lines) in enumerate(self._differing):
            self._show(case, lines, shrinking=number < self._options.shrink_most)
        self._print_report()
        return 0 if self._tally.cases == self._tally.equal else 1

    def cases(self) -> Iterator[Case]:
        """What kube-scheduler decides, without asking Podium."""
        for result in self._results():
            if isinstance(result, Case):
                self._tally.add(result, None, equal=True)
                yield result
            self._progress()
        self._finish_progress()

    def _results(self) -> Iterator[Case | Disturbed]:
        only = self._options.only_cluster
        if only is not None:
            yield from self._real.run(self._cluster(only))
            return
        index = 0
        while self._tally.cases < self._options.cases:
            plan = self._cluster(index)
            left = self._options.cases - self._tally.cases
            plan.pending = plan.pending[:left]
            yield from self._real.run(plan)
            index += 1

    def _cluster(self, index: int) -> ClusterPlan:
        return make_cluster(self._options.seed, index, theme=self._options.theme)

    def _judge(self, case: Case) -> None:
        answer, lines = (None, []) if self._options.real_only else _ask(case)
        self._tally.add(case, answer, equal=not lines)
        if lines:
            self._differing.append((case, lines))
        if self._options.save_all:
            save_case(case, self._options.folder / f"{self._options.seed}-{case.name}", lines)
        if self._options.verbose:
            real = case.decision
            print(f"{case.name} [{case.theme}] {real.outcome} {real.node}{real.message}", *lines, sep="\n    ")

    def _show(self, case: Case, lines: list[str], shrinking: bool) -> None:
        folder = self._options.folder / f"{self._options.seed}-{case.name}"
        save_case(case, folder, lines)
        print(f"\ndiffers: {folder} ({len(case.objects)} objects, pod {case.pod_key})")
        print(*(f"  {line}" for line in lines), sep="\n")
        if not shrinking or self._options.shrink_tries == 0:
            return
        smallest = shrink(self._real, case, lambda each: _ask(each)[1], self._options.shrink_tries)
        if smallest is None:
            print("  decided again, it does not differ or cannot be decided; the first answer stands in the folder")
            return
        small_folder = folder.with_name(f"{folder.name}-small")
        small_lines = _ask(smallest)[1]
        save_case(smallest, small_folder, small_lines)
        print(f"  smallest found: {small_folder} ({len(smallest.objects)} objects)")
        print(*(f"    {line}" for line in small_lines), sep="\n")

    def _print_report(self) -> None:
        tally, creator = self._tally, self._real.creator
        print(f"\n{tally.table()}")
        refused = creator.refusals.total()
        print(f"\nobjects created {creator.created}, refused by the API server {refused}")
        for text, count in creator.refusals.most_common(5):
            print(f"  {count} × {text[:200]}")
        if tally.disturbed:
            print(f"cases thrown away: {tally.disturbed.total()}")
            print(*(f"  {count} × {why[:200]}" for why, count in tally.disturbed.most_common()), sep="\n")
        for warning in tally.warnings():
            print(f"warning: {warning}")
        seconds = time.monotonic() - self._began
        print(f"\n{seconds:.0f} s, {seconds / max(1, tally.cases):.2f} s for each case")
        if self._options.real_only:
            print(f"{tally.cases} cases decided by kube-scheduler; nothing was compared")
        else:
            print(f"{tally.equal} of {tally.cases} equal")

    def _progress(self) -> None:
        if sys.stderr.isatty():
            differing = len(self._differing)
            text = f"\rparity: {self._tally.cases} of {self._options.cases} cases, {differing} differ"
            print(text, end="", file=sys.stderr, flush=True)

    def _finish_progress(self) -> None:
        if sys.stderr.isatty():
            print(file=sys.stderr)


def _ask(case: Case) -> tuple[Answer | None, list[str]]:
    """Podium's answer and what differs; a crash of Podium is a difference like any other."""
    try:
        return judge(case)
    except Exception as error:
        return None, [f"Podium fails: {type(error).__name__}: {error}"]


def _replay(folder: Path) -> int:
    """Written cases again, Podium against what kube-scheduler said when they were written."""
    folders = sorted(path.parent for path in folder.glob("**/expected.json"))
    equal = 0
    for each in folders:
        case = load_case(each)
        lines = _ask(case)[1]
        equal += not lines
        if lines:
            print(f"differs: {each} (pod {case.pod_key})", *lines, sep="\n  ")
    print(f"{equal} of {len(folders)} equal")
    return 0 if folders and equal == len(folders) else 1


def _record(comparison: Comparison, options: argparse.Namespace) -> int:
    path = recording_of(options.kubernetes)
    theme = f" --theme {options.theme}" if options.theme else ""
    command = f"--record --kubernetes {options.kubernetes} --cases {options.cases} --seed {options.seed}{theme}"
    cases = list(comparison.cases())
    write_recording(path, cases, KUBERNETES[options.kubernetes], f"python -m tools.parity {command}")
    print(f"{len(cases)} decisions of kube-scheduler {KUBERNETES[options.kubernetes]} in {path}")
    return 0


def _compare_recorded(path: Path) -> int:
    """Podium against decisions that were kept."""
    if not path.exists():
        print(f"parity: {path} is missing; python -m tools.parity --record writes it", file=sys.stderr)
        return 2
    cases = read_recording(path)
    equal = 0
    for case in cases:
        lines = _ask(case)[1]
        equal += not lines
        if lines:
            print(f"differs: {case.name} [{case.theme}] (pod {case.pod_key})", *lines, sep="\n  ")
    print(f"{equal} of {len(cases)} equal")
    return 0 if equal == len(cases) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.parity", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=200, help="how many pods to decide (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same clusters (default 1)")
    parser.add_argument("--kubernetes", choices=sorted(KUBERNETES), default=MINOR, help=f"the minor (default {MINOR})")
    parser.add_argument("--only-cluster", type=int, metavar="K", help="run one cluster of the seed")
    parser.add_argument("--theme", choices=sorted(THEMES), help="clusters of one theme only")
    parser.add_argument("--folder", type=Path, default=Path("build/parity"), help="where differing cases are written")
    parser.add_argument("--shrink-tries", type=int, default=40, help="re-runs for each shrunk case; 0 turns it off")
    parser.add_argument("--shrink-most", type=int, default=3, help="how many differing cases to shrink (default 3)")
    parser.add_argument("--real-only", action="store_true", help="run kube-scheduler's side alone")
    parser.add_argument("--save-all", action="store_true", help="write every case, not only those that differ")
    parser.add_argument("--replay", type=Path, metavar="FOLDER", help="ask Podium again about all cases under FOLDER")
    parser.add_argument("--record", action="store_true", help="keep what kube-scheduler decides in a file")
    parser.add_argument("--recorded", action="store_true", help="ask Podium about the decisions that were kept")
    parser.add_argument("--groups", action="store_true", help="compare PodGroups, with kube-scheduler's gates on")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    return parser


if __name__ == "__main__":
    sys.exit(main())

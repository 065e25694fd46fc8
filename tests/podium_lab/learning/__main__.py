"""Compares kernel and engine on whole openb lists, decision by decision:

python -m tests.podium_lab.learning DIR [--lists default,gpuspec33] [--seeds 42-44] [--policy fill] [--ties fixed,heap]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from podium.config.seeds import parse_seeds
from podium_lab.learned.policy_file import path_of, read_policy
from podium_lab.learning.judge import scorer_of
from podium_lab.learning.kernel import KernelRun
from podium_lab.learning.lists import NODE_LIST, find_list, find_nodes, node_specs, static_plan
from tests.podium_lab.learning.engine_decisions import engine_decisions, kernel_decisions


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare kernel and engine, decision by decision.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--lists", default="default,gpushare40,gpuspec33,multigpu40")
    parser.add_argument("--seeds", default="42-44")
    parser.add_argument("--policy", default="fill")
    parser.add_argument("--ties", default="fixed,heap")
    given = parser.parse_args()
    policy = read_policy(path_of(given.policy))
    specs = node_specs(find_nodes(given.data))
    different = 0
    for name in given.lists.split(","):
        pods = find_list(name, given.data)
        for seed in parse_seeds(given.seeds):
            plan = static_plan(specs, pods.pods, seed)
            for ties in given.ties.split(","):
                args = {"policy": str(path_of(given.policy)), "knowledge": "workload", "firstOfEquals": ties == "fixed"}
                engine = engine_decisions(given.data, NODE_LIST, str(pods.path), seed, "LearnedScore", args)
                run = KernelRun(plan, scorer_of(policy), ties, seed)
                run.static(pods.workload)
                equal = kernel_decisions(plan, run, pods.pods, seed) == engine
                different += not equal
                print(f"{name} {seed} {ties}: {len(engine)} placed, {'equal' if equal else 'DIFFERENT'}", flush=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

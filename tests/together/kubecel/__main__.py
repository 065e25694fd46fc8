"""Compares what Podium and the real API server say of random CEL expressions.

    python -m tests.together.kubecel --count 5000 --seed 1
    python -m tests.together.kubecel --kubernetes 1.37    # the API server of another minor

Exit code 0: all equal; 1: some differ; 2: the comparison could not run.
"""

import argparse
import sys

from tests.kubecel.generated import expressions
from tests.together.kubecel.apiserver import answer_of_podium, answers_of_the_api_server
from tools.testbed.availability import TestbedUnavailable
from tools.testbed.build import KUBERNETES
from tools.testbed.cluster import ControlPlane

SHOWN = 20


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.together.kubecel", description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="how many expressions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kubernetes", choices=sorted(KUBERNETES), default="", help="the API server's minor")
    options = parser.parse_args(arguments)
    try:
        with ControlPlane(kubernetes=options.kubernetes) as plane:
            texts = expressions(options.seed, options.count)
            answers = answers_of_the_api_server(plane.client, texts)
    except TestbedUnavailable as unavailable:
        print(f"cel: {unavailable}", file=sys.stderr)
        return 2
    differing = [
        (text, theirs, ours)
        for text, theirs in zip(texts, answers, strict=True)
        if (ours := answer_of_podium(text)) != theirs
    ]
    for text, theirs, ours in differing[:SHOWN]:
        print(f"{text!r}\n  the API server: {theirs or 'accepted'}\n  Podium: {ours or 'accepted'}")
    accepted = sum(not answer for answer in answers)
    print(f"{len(texts) - len(differing)} of {len(texts)} equal; {accepted} accepted, {len(texts) - accepted} refused")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

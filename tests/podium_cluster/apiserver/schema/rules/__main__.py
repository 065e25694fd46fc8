"""Compares what the embedded API and the real one make of random rules in CustomResourceDefinitions.

    python -m tests.podium_cluster.apiserver.schema.rules --count 500 --seed 1

Exit code 0: all equal; 1: some differ; 2: the comparison could not run.
"""

import argparse
import json
import sys

from tests.podium_cluster.apiserver.contract.session import Server, Session
from tests.podium_cluster.apiserver.schema.rules.comparison import compare
from tests.podium_cluster.apiserver.schema.rules.generated import rule_cases
from tests.podium_cluster.apiserver.server import EmbeddedServer
from tools.testbed.availability import TestbedUnavailable
from tools.testbed.cluster import ControlPlane

SHOWN = 20


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.podium_cluster.apiserver.schema.rules", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="how many definitions")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    cases = rule_cases(options.seed, options.count)
    try:
        with ControlPlane() as plane, EmbeddedServer() as server:
            real = Session(Server(plane.server, token=plane.token, ca_path=plane.ca_path), "default")
            embedded = Session(Server(server.server), "default")
            compared = compare(real, embedded, cases)
    except TestbedUnavailable as unavailable:
        print(f"rules: {unavailable}", file=sys.stderr)
        return 2
    found = compared.differences
    for each in found[:SHOWN]:
        print(f"{json.dumps(each.case.schema)}\n  {each.what}")
        print(f"  the API server: {each.real}\n  Podium: {each.embedded}")
    print(f"{len(cases) - len(found)} of {len(cases)} equal: {compared}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

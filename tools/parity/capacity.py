"""Puts `podium capacity` beside cluster-capacity, on the same API server: `python -m tools.parity.capacity 20`.

The clusters are random and have no pods that wait, and the pod asks for amounts only, for there both should agree.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tools.parity.capacity_clusters import CONTROLLERS, predicted, started, without_pending
from tools.testbed import ControlPlane
from tools.testbed.build import programs

CASES: Final = 20
FIRST_SEED: Final = 500


def pod_of(rng: random.Random) -> dict[str, Any]:
    """A pod as cluster-capacity wants it: with what the API server would fill in."""
    amounts = {"cpu": f"{rng.choice((250, 500, 700, 1000))}m", "memory": f"{rng.choice((256, 512, 1024))}Mi"}
    container = {
        "name": "c",
        "image": "app",
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
        "resources": {"requests": amounts},
    }
    spec = {"containers": [container], "restartPolicy": "Always", "dnsPolicy": "Default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cap", "namespace": "default"}, "spec": spec}


def of_theirs(program: Path, plane: ControlPlane, pod: dict[str, Any]) -> dict[str, int]:
    """The replicas on each node by cluster-capacity."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pod.yaml")
        file.write_text(json.dumps(pod))
        command = [str(program), "--kubeconfig", str(plane.kubeconfig_path), "--podspec", str(file), "-o", "json"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    document = json.loads(printed[printed.find("{") :])
    (shares,) = document["status"]["pods"]
    return {each["nodeName"]: each["replicas"] for each in shares["replicasOnNodes"] or ()}


def main(cases: int) -> int:
    """Compare so many clusters; 1 where one differs."""
    program = programs("cluster-capacity")["cluster-capacity"]
    equal = 0
    with ControlPlane() as plane:
        plane.start_controller_manager(CONTROLLERS)
        plane.start_scheduler({"percentageOfNodesToScore": 100})
        for seed in range(FIRST_SEED, FIRST_SEED + cases):
            rng = random.Random(seed)
            started(plane, rng, rng.randrange(2, 7), rng.randrange(0, 4))
            without_pending(plane)
            pod = pod_of(rng)
            theirs, ours = of_theirs(program, plane, pod), dict(predicted(plane, pod).on)
            equal += theirs == ours
            same = "the same" if theirs == ours else f"differs: {theirs} and {ours}"
            print(f"cluster {seed}: cluster-capacity {sum(theirs.values())}, podium {sum(ours.values())}: {same}")
    print(f"{equal} of {cases} clusters: the same replicas on each node")
    return 0 if equal == cases else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else CASES))

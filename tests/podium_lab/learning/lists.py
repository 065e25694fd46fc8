"""A made cluster and made pod lists in the openb format, small enough for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_lists(folder: Path, nodes: int = 40, pods: int = 160) -> Path:
    """A node list and the pod lists "made" (with times) and "gpuspec33"."""
    rng = np.random.default_rng(1)
    lines = ["sn,cpu_milli,memory_mib,gpu,model"]
    for i in range(nodes):
        gpus, model = int(rng.choice([1, 2, 4, 8])), rng.choice(["T4", "P100", "G2"])
        lines.append(f"node-{i},{8000 * gpus},{32000 * gpus},{gpus},{model}")
    (folder / "openb_node_list_gpu_node.csv").write_text("\n".join(lines) + "\n")
    for name in ("made", "gpuspec33"):
        lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time"]
        for i in range(pods):
            share, several = int(rng.choice([120, 300, 460, 810])), int(rng.choice([2, 4]))
            count, milli = [(0, 0), (1, share), (1, 1000), (several, 1000)][rng.integers(0, 4)]
            model = rng.choice(["", "", "T4", "P100|T4"]) if count else ""
            cpu, memory = int(rng.choice([1000, 4000, 7900])), rng.integers(1, 40) * 500
            times = f"{i},{i + int(rng.integers(600, 9000))}"
            lines.append(f"pod-{i:03d},{cpu},{memory},{count},{milli},{model},{times}")
        (folder / f"openb_pod_list_{name}.csv").write_text("\n".join(lines) + "\n")
    return folder

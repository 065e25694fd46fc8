"""Writes clusters of GPUs that MIG cuts, and pods that ask for its shapes, as lists in the openb format.

What reads openb lists (`podium simulate`, `train`, `evaluate`) reads these. A shape is a share of a GPU: its memory
slices of 8. A list counts what fits by shares, so it lets two 4g instances share a GPU, which MIG does not:
`fit_together` knows.

A GPU has 8 memory slices. A shape takes some of them in a row, and may begin only at certain ones; of the 7 compute
slices it takes its own number. Source: the table of profiles and placements that the driver prints
(`nvidia-smi mig -lgip` and `-lgipp`), as NVIDIA's MIG user guide has it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from podium_lab.simulator.scenario import ScenarioError

MEMORY_SLICES, COMPUTE_SLICES = 8, 7


class MigShape(NamedTuple):
    """One shape of a GPU instance."""

    name: str
    compute: int
    """Compute slices, of 7."""
    memory: int
    """Memory slices, of 8, in a row."""
    starts: tuple[int, ...]
    """The memory slices that it may begin at."""

    @property
    def milli(self) -> int:
        """The share of a GPU, in thousandths, that it takes from others: its memory slices."""
        return 1000 * self.memory // MEMORY_SLICES


def _shapes(memory: Sequence[str]) -> tuple[MigShape, ...]:
    one, two, four, eight = memory
    return (
        MigShape(f"1g.{one}", 1, 1, (0, 1, 2, 3, 4, 5, 6)),
        MigShape(f"1g.{two}", 1, 2, (0, 2, 4, 6)),
        MigShape(f"2g.{two}", 2, 2, (0, 2, 4)),
        MigShape(f"3g.{four}", 3, 4, (0, 4)),
        MigShape(f"4g.{four}", 4, 4, (0,)),
        MigShape(f"7g.{eight}", 7, 8, (0,)),
    )


MIG_SHAPES = {
    "A100-40GB": _shapes(("5gb", "10gb", "20gb", "40gb")),
    "A100-80GB": _shapes(("10gb", "20gb", "40gb", "80gb")),
    "H100-80GB": _shapes(("10gb", "20gb", "40gb", "80gb")),
    "H200-141GB": _shapes(("18gb", "35gb", "71gb", "141gb")),
}
"""The shapes of each GPU model, the smallest first."""


@lru_cache(maxsize=1 << 14)
def fit_together(shapes: tuple[MigShape, ...]) -> bool:
    """Whether instances of these shapes can stand on one GPU at the same time, wherever each begins.

    >>> small, _, two, three, four, whole = MIG_SHAPES["A100-40GB"]
    >>> [fit_together(each) for each in ((small,) * 7, (small,) * 8, (three, four), (four, four), (two,) * 3)]
    [True, False, True, False, True]
    """
    if sum(shape.compute for shape in shapes) > COMPUTE_SLICES:
        return False
    largest_first = sorted(shapes, key=lambda shape: -shape.memory)
    return _placed(tuple(largest_first), 0)


def _placed(shapes: tuple[MigShape, ...], taken: int) -> bool:
    """Whether the shapes fit beside the memory slices that are taken, one bit each."""
    if not shapes:
        return True
    shape, *others = shapes
    for start in shape.starts:
        slices = ((1 << shape.memory) - 1) << start
        if not slices & taken and _placed(tuple(others), taken | slices):
            return True
    return False


NODES, PODS = "openb_node_list_gpu_node.csv", "openb_pod_list_mig.csv"
NODE_CPU, NODE_MEMORY, GPUS = 96_000, 786_432, 8
"""Thousandths of a core, MiB and GPUs of a node."""
MIX = {"1g": 5.0, "2g": 2.0, "3g": 2.0, "4g": 0.5, "7g": 1.0, "none": 1.0}
"""How often pods ask for shapes of each size, or for no GPU, unless it is given."""
CPU_OF_SLICE = (1000, 1500, 2000, 4000)
"""What a pod may ask of CPU, for each compute slice."""
MEMORY_OF_CORE = 4096
"""MiB for each core."""


def write_mig_lists(
    folder: Path, gpu: str, nodes: int, pods: int, seed: int, mix: Mapping[str, float] | None = None
) -> list[Path]:
    """A node list and a pod list; the same seed gives the same bytes."""
    if gpu not in MIG_SHAPES:
        raise ScenarioError(f'there is no table of MIG shapes for "{gpu}"; choose one of {", ".join(MIG_SHAPES)}')
    weights = dict(MIX if mix is None else mix)
    sizes = {shape.name.partition(".")[0] for shape in MIG_SHAPES[gpu]}
    for name, weight in weights.items():
        if name not in {*sizes, "none"} or not 0 <= weight < float("inf"):
            wanted = f"{', '.join(sorted(sizes))} or none"
            raise ScenarioError(f"mix: {name}={weight:g}: expected {wanted}, with a weight of 0 or more")
    if not sum(weights.values()) > 0:
        raise ScenarioError("mix: expected at least one weight above 0")
    folder.mkdir(parents=True, exist_ok=True)
    machines = [(f"mig-node-{i:04d}", NODE_CPU, NODE_MEMORY, GPUS, gpu) for i in range(nodes)]
    return [
        _write(folder / NODES, ("sn", "cpu_milli", "memory_mib", "gpu", "model"), machines),
        _write(
            folder / PODS,
            ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time"),
            _pods(gpu, pods, seed, weights),
        ),
    ]


def _pods(gpu: str, pods: int, seed: int, weights: Mapping[str, float]) -> list[tuple[object, ...]]:
    rng = np.random.default_rng([seed, 0x4D16])
    names, shares = list(weights), np.array(list(weights.values()))
    rows: list[tuple[object, ...]] = []
    created = 0.0
    for number, index in enumerate(rng.choice(len(names), pods, p=shares / shares.sum()).tolist()):
        shapes = [shape for shape in MIG_SHAPES[gpu] if shape.name.startswith(f"{names[index]}.")]
        created += float(rng.exponential(5.0))
        lifetime = float(np.clip(rng.lognormal(7.0, 1.2), 30.0, 86_400.0))
        cpu = int(rng.choice(CPU_OF_SLICE)) * (shapes[0].compute if shapes else 2)
        milli = int(shapes[int(rng.integers(len(shapes)))].milli) if shapes else 0
        memory = cpu * MEMORY_OF_CORE // 1000
        times = f"{created:.0f}", f"{created + lifetime:.0f}"
        rows.append((f"mig-pod-{number:06d}", cpu, memory, 1 if shapes else 0, milli, "", *times))
    return rows


def _write(path: Path, names: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    return path

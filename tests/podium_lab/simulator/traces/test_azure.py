"""The Azure trace, as one CSV and as its upstream files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from podium_lab.simulator.scenario import AzurePods, ScenarioError
from podium_lab.simulator.traces.azure import arrivals, read_csv, read_folder
from tests.podium_lab.simulator.scenarios import DATA, EXAMPLES, needs

SAMPLE = EXAMPLES / "traces" / "azure-vms.csv"
FOLDER = DATA / "azure-vm-2017"


def upstream(
    folder: Path, sizes: str = "100 a,a,|,b,|\n400 a,|\n", lives: str = "100 U0,U1,|,C1,|\n400 U2,|\n"
) -> Path:
    (folder / "v1.dev.txt").write_text(sizes)
    (folder / "v1.dev.c2100000.txt").write_text(lives)
    (folder / "flav_map.txt").write_text("1,1.75 a\n2,3.5 b\n")
    (folder / "v1.interval_map.txt").write_text("0 0\n300 1\n600 2\n900 2\n")
    read_folder.cache_clear()
    return folder


def test_upstream_files_are_read_together(tmp_path: Path) -> None:
    machines = read_folder(upstream(tmp_path))
    assert machines.at.tolist() == [0, 0, 0, 300]
    assert machines.batch.tolist() == [0, 0, 1, 2]
    assert [machines.shapes[shape] for shape in machines.shape] == [(1000, 1792)] * 2 + [(2000, 3584), (1000, 1792)]
    assert machines.shortest.tolist() == [0, 300, 300, 600]
    assert machines.longest.tolist() == [0, 300, np.inf, 900]


@pytest.mark.parametrize(
    ("sizes", "lives", "expected"),
    [
        ("100 a,|\n", "100 U0,U1,|\n", "expected 2 entries stamped 100"),
        ("100 z,|\n", "100 U0,|\n", r'v1\.dev\.txt:1: column 2: expected the letter of a size, got "z"'),
        ("100 a,|\n", "100 X0,|\n", r'c2100000\.txt:1: column 2: expected U or C and the number of a bin, got "X0"'),
        ("now a,|\n", "100 U0,|\n", r'v1\.dev\.txt:1: column 1: expected a time stamp, got "now"'),
    ],
)
def test_upstream_files_that_do_not_fit_are_told(sizes: str, lives: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=expected):
        read_folder(upstream(tmp_path, sizes, lives))


def test_batches_arrive_together_within_their_five_minutes() -> None:
    machines = read_csv(SAMPLE)
    pods = list(arrivals(AzurePods(file="x"), SAMPLE, 1))
    assert [pod.at for pod in pods] == sorted(pod.at for pod in pods)
    by_batch: dict[int, set[float]] = {}
    for pod in pods:
        index = int(pod.name.removeprefix("vm-"))
        by_batch.setdefault(int(machines.batch[index]), set()).add(pod.at)
        assert machines.at[index] - 300 <= pod.at <= machines.at[index] or pod.at == 0
        assert pod.lifetime == np.inf or machines.shortest[index] <= pod.lifetime <= machines.longest[index]
    assert all(len(times) == 1 for times in by_batch.values())


def test_lifetimes_can_be_fixed() -> None:
    machines = read_csv(SAMPLE)
    for kind, column in (("min", machines.shortest), ("max", machines.longest)):
        pods = arrivals(AzurePods(file="x", lifetime=kind), SAMPLE, 1)  # type: ignore[arg-type]
        for pod in pods:
            index = int(pod.name.removeprefix("vm-"))
            assert pod.lifetime in (column[index], np.inf)


@needs("azure-vm-2017")
def test_the_trace_has_the_numbers_its_readme_says() -> None:
    machines = read_folder(FOLDER)
    assert len(machines.at) == 259_159
    cores = sum(machines.shapes[shape][0] for shape in machines.shape.tolist()) / 1000
    assert cores == 557_907
    assert int(np.isinf(machines.longest).sum()) == 14_317
    assert len(read_csv(FOLDER / "day1.csv").at) == 70_239

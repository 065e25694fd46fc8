"""Judging: paired differences, protocols, the bound, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("numba")

from podium_lab.learning import evaluation
from podium_lab.learning.bound import bounds, most_gpu
from podium_lab.learning.judge import Question, Row, answer, compare
from podium_lab.learning.kernel import KernelRun, plan_of
from podium_lab.learning.kernel_state import KernelNode, KernelPod
from podium_lab.learning.lists import find_list, find_nodes, node_specs
from podium_lab.learning.protocols import HOURS, churn_plan, run_churn_plan
from podium_plugins.gpu.request import GpuRequest
from tests.podium.cli.command import podium
from tests.podium_lab.learned.policies import policy, written
from tests.podium_lab.learning.lists import write_lists
from tests.podium_lab.simulator.scenarios import DATA, needs

pytestmark = pytest.mark.long  # compiling takes most of the time

WHOLE_GPU, SHARE = GpuRequest(1, 1000), GpuRequest(1, 600)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lists(tmp_path_factory.mktemp("lists"))


@pytest.fixture(scope="module")
def file(data: Path) -> Path:
    return written(data / "policy.json", policy({"F": 1.0, "R1": -0.3}))


def test_differences_are_paired_by_seed() -> None:
    rows = [
        {"list": "a", "policy": who, "seed": seed, "ties": "fixed", "arrived_pct": 100, "gpu_allocation_pct": value}
        for who, values in (("mine", (91.0, 95.0)), ("FGD", (90.0, 94.5)))
        for seed, value in enumerate(values)
    ]
    (found,) = compare(rows, "mine", ["FGD"])
    assert found.difference.mean == pytest.approx(0.75)
    assert found.smallest == pytest.approx(0.5)
    assert not found.beats, "the interval of two seeds is wide"


def test_evaluate_prints_a_row_per_list_policy_seed_rule_and_percent(data: Path, file: Path, tmp_path: Path) -> None:
    arguments = ("evaluate", str(file), "--data", str(data), "--lists", "made", "--seeds", "42-43", "--ties", "all")
    rows = json.loads(podium(*arguments, "--json").out)
    assert len(rows) == 3 * 3 * 2 * 2
    assert {row["policy"] for row in rows} == {"test", "FGD", "BestFit"}
    assert all(50 < row["gpu_allocation_pct"] <= 100 for row in rows)
    picture = tmp_path / "plot.svg"
    text = podium(*arguments, "--plot", str(picture)).out
    drawn = ElementTree.fromstring(picture.read_text())
    assert any("made, arrived % 100" in (each.text or "") for each in drawn.iter())
    assert "smallest" in text
    counted = json.loads(podium(*arguments, "--knowledge", "counted", "--workers", "2", "--json").out)
    assert [row for row in counted if row["policy"] == "FGD"] == [row for row in rows if row["policy"] == "FGD"]


def test_evaluate_by_churn_with_a_queue(data: Path, file: Path) -> None:
    arguments = ("evaluate", str(file), "--data", str(data), "--lists", "made", "--seeds", "42", "--protocol", "churn")
    rows = json.loads(podium(*arguments, "--loads", "0.9,1.2", "--queue", "--json").out)
    assert [row["load"] for row in rows if row["policy"] == "test"] == [0.9, 1.2]
    waits = {row["load"]: row["wait_mean_s"] for row in rows if row["policy"] == "test"}
    assert waits[0.9] <= waits[1.2]
    assert waits[1.2] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--seeds", "1000-1003"), "trained or chosen on seeds 1000, 1001"),
        (("--seeds", "x"), "--seeds"),
        (("--lists", "unknown"), "there is no such pod list"),
        (("--against", "Nothing"), 'there is no rule "Nothing"'),
        (("--protocol", "churn", "--loads", "-1"), "--loads"),
        (("--protocol", "churn", "--knowledge", "counted"), "--knowledge counted: is for the static protocol"),
        (("--lists", ","), "--lists: names no list"),
    ],
)
def test_what_cannot_be_judged_is_bad_input(data: Path, file: Path, arguments: tuple[str, ...], words: str) -> None:
    given = ("--lists", "made") if "--lists" not in arguments else ()
    found = podium("evaluate", str(file), "--data", str(data), *given, *arguments)
    assert found.code == 2
    assert words in found.err


def test_pods_that_live_too_shortly_for_churn_are_bad_input(data: Path, file: Path, tmp_path: Path) -> None:
    heading, *pods = (data / "openb_pod_list_made.csv").read_text().splitlines()
    short = tmp_path / "short.csv"
    short.write_text("\n".join([heading, *(f"{pod.rpartition(',')[0]},0" for pod in pods)]) + "\n")
    nodes = (data / "openb_node_list_gpu_node.csv").read_text().splitlines()
    many = [nodes[0], *(f"big-{i},800000,3200000,64,T4" for i in range(400))]
    (tmp_path / "openb_node_list_gpu_node.csv").write_text("\n".join(many) + "\n")
    found = podium("evaluate", str(file), "--data", str(tmp_path), "--lists", str(short), "--protocol", "churn")
    assert found.code == 2
    assert "live so shortly" in found.err


def test_lists_of_one_name_are_told_apart(data: Path, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "made.csv"
    other.write_text((data / "openb_pod_list_made.csv").read_text())
    lists = f"made,{other},made"
    arguments = (
        "evaluate",
        str(file),
        "--data",
        str(data),
        "--lists",
        lists,
        "--seeds",
        "42",
        "--against",
        "",
        "--json",
    )
    rows = json.loads(podium(*arguments).out)
    assert [row["list"] for row in rows] == ["made", "made", str(other), str(other)]


def test_an_evaluation_that_was_stopped_goes_on(
    data: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, asked = tmp_path / "rows.jsonl", []
    arguments = ("evaluate", str(file), "--data", str(data), "--lists", "made", "--seeds", "42-44", "--json")
    whole = podium(*arguments).out

    def stopped(question: Question) -> list[Row]:
        asked.append(question.seed)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return answer(question)

    monkeypatch.setattr(evaluation, "answer", stopped)
    found = podium(*arguments, "--keep", str(kept))
    assert found.code == 1
    assert "the same command continues" in found.err
    kept.write_bytes(kept.read_bytes() + b'{"key": "cut o')
    assert podium(*arguments, "--keep", str(kept)).out == whole
    assert asked == [42, 43, 44, 44], "what was kept is not run again"
    kept.write_text("something else\n")
    assert podium(*arguments, "--keep", str(kept)).code == 2


def test_an_evaluation_in_parts_gives_the_same_rows_and_runs_none_twice(data: Path, file: Path, tmp_path: Path) -> None:
    arguments = ("evaluate", str(file), "--data", str(data), "--lists", "made", "--seeds", "42-44", "--json")
    whole = podium(*arguments).out
    stored = (*arguments, "--store", str(tmp_path / "store"))
    assert "1 of all 3 units" in podium(*stored, "--units", "2/3").out
    assert json.loads(podium(*stored, "--estimate").out)["units"] == 3
    last = podium(*stored)
    assert last.out == whole
    assert json.loads(last.err.splitlines()[-1])["skipped"] == 3
    assert podium("simulate", "status", str(tmp_path / "store")).code == 0


def test_policies_are_shown_and_verified(file: Path, tmp_path: Path) -> None:
    assert "R1" in podium("policy", "show", str(file)).out
    assert podium("policy", "verify", str(file)).code == 0
    broken = tmp_path / "broken.json"
    broken.write_bytes(file.read_bytes().replace(b"-0.3", b"-0.4"))
    found = podium("policy", "verify", str(broken))
    assert found.code == 1
    assert "was changed after it was written" in found.err
    assert podium("policy", "verify", str(tmp_path / "none")).code == 2


def test_train_writes_a_policy_and_goes_on(data: Path, tmp_path: Path) -> None:
    arguments = ("train", "--form", "S1", "--data", str(data), "--lists", "made", "--generations", "2")
    out = ("--population", "4", "--out", str(tmp_path))
    assert podium(*arguments, *out).code == 0
    first = (tmp_path / "S1-1.json").read_bytes()
    (tmp_path / "S1-1.json").unlink()
    again = podium(*arguments, *out, "-o", "json")
    assert (tmp_path / "S1-1.json").read_bytes() == first
    (result,) = json.loads(again.out)
    written = json.loads(first)
    assert result == {
        "name": "S1-1", "file": f"{tmp_path}/S1-1.json",
        "values": written["weights"], "provenance": written["provenance"],
    }  # fmt: skip
    (left,) = json.loads(podium(*arguments, *out, "--estimate", "-o", "json").out)
    assert (left["name"], left["units"]) == ("S1-1", 8)
    assert podium("policy", "verify", str(tmp_path / "S1-1.json")).code == 0
    assert podium("train", "--form", "S9").code == 2


def test_a_form_that_is_trained_by_churn_wants_a_list_with_times(data: Path, tmp_path: Path) -> None:
    heading, *pods = (data / "openb_pod_list_made.csv").read_text().splitlines()
    timeless = tmp_path / "timeless.csv"
    timeless.write_text("\n".join([heading, *(f"{pod.rpartition(',')[0]}," for pod in pods)]) + "\n")
    given = ("--data", str(data), "--lists", str(timeless), "--out", str(tmp_path), "--generations", "1")
    found = podium("train", "--form", "C", *given, "--population", "4")
    assert found.code == 2
    assert "no list has deletion times" in found.err


def test_no_policy_passes_the_bound(data: Path) -> None:
    rows = bounds(data, "made", 42)
    limit = {row["arrived_pct"]: row["gpu_allocation_pct"] for row in rows if row["policy"] == "bound"}
    assert isinstance(limit[130], float)
    assert 0 < limit[130] <= 100


def test_the_bound_by_hand() -> None:
    """Two GPUs and cpu for two pods: shares of 600 cannot lie together."""
    nodes = [KernelNode("a", 4000, 1000, 2, "T4")]
    assert most_gpu(nodes, [KernelPod(1000, 1, SHARE)] * 4) == pytest.approx(1200)
    assert most_gpu(nodes, [KernelPod(1000, 1, WHOLE_GPU), *[KernelPod(1000, 1, SHARE)] * 4]) == pytest.approx(1600)
    assert most_gpu(nodes, [KernelPod(4000, 1, SHARE), KernelPod(3000, 1, WHOLE_GPU)]) == pytest.approx(1150)
    certain = [KernelPod(4000, 1, SHARE)]
    assert most_gpu(nodes, [*certain, KernelPod(3000, 1, WHOLE_GPU)], certain) == pytest.approx(600)
    assert most_gpu(nodes, certain * 2, certain * 2) is None


@needs("openb")
@pytest.mark.parametrize(
    ("name", "limits"), [("default", [96.9, 96.6, 99.9, 96.7]), ("gpuspec33", [96.4, None, 99.8, None])]
)
def test_the_bound_of_the_lists(name: str, limits: list[float | None]) -> None:
    found = [row["gpu_allocation_pct"] for row in bounds(DATA / "openb", name, 42)]
    assert found == [None if limit is None else pytest.approx(limit, abs=0.2) for limit in limits]


def test_churn_by_hand() -> None:
    """One GPU: the first pod leaves at 10 s, the second comes at 5 s and is dropped, or waits until then."""
    plan = plan_of([KernelNode("a", 8000, 100, 1, "T4")], [KernelPod(1000, 1, WHOLE_GPU)] * 2)
    arrival, lifetime = np.array([0.0, 5.0]), np.array([10.0, 10.0])
    workload = {(1000, WHOLE_GPU): 2}
    drop = KernelRun(plan, "BestFit", "fixed")
    assert drop.churn(arrival, lifetime, 40.0, 0.0, False, workload) == pytest.approx(250)
    assert drop.chosen.tolist() == [0, -1]
    queue = KernelRun(plan, "BestFit", "fixed")
    assert queue.churn(arrival, lifetime, 40.0, 0.0, True, workload) == pytest.approx(500)
    assert queue.waited.tolist() == [0.0, 5.0]


def test_churn_asks_for_its_load(data: Path) -> None:
    specs, pods = node_specs(find_nodes(data)), find_list("made", data)
    plan = churn_plan(specs, pods, 42, 0.5)
    capacity = sum(plan.plan.capacity.values())
    later = plan.arrival > 0
    work = float((plan.plan.gpu[later] * plan.lifetime[later]).sum())
    assert work / (capacity * HOURS) == pytest.approx(0.5, rel=0.2)
    found = run_churn_plan(plan, "BestFit", "fixed", 42, pods.workload, queue=False)
    assert 40 < found.allocation < 60
    assert found.rejected_gpu_time < 5

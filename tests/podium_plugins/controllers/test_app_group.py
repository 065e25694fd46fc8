"""The status of an AppGroup: how many pods run, and in which order its workloads are tried."""

from __future__ import annotations

from typing import Any

import pytest

from podium.controllers.controller import ReconcileResult
from podium.framework import ManualClock
from podium.kube import Pod
from podium.kube.json_object import JsonObject
from podium_plugins.controllers.app_group import AppGroupController
from tools.kit.builders import build

NOW = 1_700_000_000.0
TIME = "2023-11-14T22:13:20Z"


def workload(name: str, *below: str, selector: str = "") -> JsonObject:
    dependencies = [{"workload": _reference(each), "minBandwidth": "100Mi", "maxNetworkCost": 30} for each in below]
    return {"workload": _reference(name, selector), "dependencies": dependencies}


def _reference(name: str, selector: str = "") -> JsonObject:
    return {"kind": "Deployment", "name": name, "selector": selector or name}


DIAMOND = [workload("p1", "p2", "p3"), workload("p2", "p4"), workload("p3", "p4"), workload("p4")]


def app_group(workloads: Any, algorithm: str = "KahnSort", status: JsonObject | None = None) -> JsonObject:
    spec = {"numMembers": 4, "topologySortingAlgorithm": algorithm, "workloads": workloads}
    return {"metadata": {"name": "a1", "namespace": "default"}, "spec": spec, "status": status or {}}


def reconcile(item: JsonObject, *phases: str, at: float = NOW) -> ReconcileResult:
    pods = [build(Pod, {"metadata": {"name": "p"}, "status": {"phase": phase}}) for phase in phases]
    return AppGroupController(ManualClock(at)).reconcile(item, {"pods": pods})


def order(result: ReconcileResult) -> dict[str, int]:
    assert result.status is not None
    return {each["workload"]["selector"]: each["index"] for each in result.status["topologyOrder"]}


def test_the_order_is_listed_by_selector_and_counts_from_1() -> None:
    result = reconcile(app_group(DIAMOND))
    assert list(order(result).items()) == [("p1", 1), ("p2", 3), ("p3", 2), ("p4", 4)]
    assert result.problem is None
    assert result.status is not None
    assert result.status["topologyCalculationTime"] == TIME


def test_a_selector_other_than_the_name_does_not_undo_the_order() -> None:
    workloads = [workload("front", "back", selector="z"), workload("back", selector="a")]
    assert order(reconcile(app_group(workloads))) == {"z": 1, "a": 2}


def test_a_workload_that_has_nothing_to_do_with_others_has_no_place() -> None:
    assert order(reconcile(app_group([*DIAMOND, workload("alone")]))).keys() == {"p1", "p2", "p3", "p4"}


def test_running_pods_are_counted() -> None:
    status = reconcile(app_group(DIAMOND), "Running", "Pending", "Running", "Succeeded").status
    assert status is not None
    assert status["runningWorkloads"] == 2


def test_what_is_right_is_not_written_again_until_a_day_has_passed() -> None:
    status = reconcile(app_group(DIAMOND), "Running").status
    later = app_group(DIAMOND, status=status)
    assert reconcile(later, "Running", at=NOW + 60) == ReconcileResult(due=24 * 3600 - 60)
    assert reconcile(later, "Running", at=NOW + 24 * 3600).status is not None


def test_the_order_follows_the_spec_at_once() -> None:
    status = reconcile(app_group(DIAMOND)).status
    changed = reconcile(app_group(DIAMOND, "ReverseKahn", status), at=NOW + 1)
    assert order(changed) == {"p4": 1, "p2": 2, "p3": 3, "p1": 4}


def test_a_circle_keeps_the_order_in_which_workloads_are_written_and_is_reported() -> None:
    result = reconcile(app_group([workload("b", "a"), workload("a", "b"), workload("c")]))
    assert order(result) == {"b": 1, "a": 2, "c": 3}
    assert result.problem is not None
    assert result.problem.note.startswith("workloads depend on each other in a circle (b → a → b)")
    assert result.status is not None
    assert result.status["message"] == result.problem.note
    mended = reconcile(app_group([workload("b", "a"), workload("a")], status=result.status)).status
    assert mended is not None
    assert mended["message"] is None


def test_an_unknown_algorithm_is_reported() -> None:
    result = reconcile(app_group(DIAMOND, "BubbleSort"))
    assert order(result)["p3"] == 2
    assert result.problem is not None
    assert 'topologySortingAlgorithm "BubbleSort" is unknown, and KahnSort is used' in result.problem.note


@pytest.mark.parametrize(
    ("workloads", "why"),
    [
        ("p1", "Expected `array`"),
        ([{"dependencies": []}], "missing required field `workload`"),
        ([{"workload": {"kind": "Deployment", "name": "p1"}}], "missing required field `selector`"),
        ([workload("a", "b") | {"dependencies": [{"workload": _reference("b"), "minBandwidth": "lots"}]}], "lots"),
        ([workload("a", "b") | {"dependencies": [{"workload": _reference("b"), "minBandwidth": "-1"}]}], "negative"),
    ],
)
def test_a_group_that_cannot_be_read_keeps_its_order_and_is_reported(workloads: Any, why: str) -> None:
    result = reconcile(app_group(workloads, status={"topologyOrder": []}), "Running")
    assert result.problem is not None
    assert result.status == {"runningWorkloads": 1, "message": result.problem.note}
    assert why in result.problem.note
    assert result.problem.type == "Warning"

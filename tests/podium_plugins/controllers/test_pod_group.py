"""The phases of a PodGroup follow from its pods, as scheduler-plugins users know them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.controllers.controller import EventNote, ReconcileResult
from podium.framework import ManualClock
from podium.kube import Pod
from podium.kube.decode import decode_json
from podium_plugins.controllers.pod_group import PodGroupController, PodGroupStatus, next_status, owners

NOW = 1_700_000_000.0


def pod(phase: str, *owner_names: str) -> Pod:
    references = ",".join(f'{{"kind":"Job","name":"{name}","uid":"u-{name}"}}' for name in owner_names)
    metadata = f'{{"name":"p","namespace":"ns","ownerReferences":[{references}]}}'
    text = f'{{"metadata":{metadata},"status":{{"phase":"{phase}"}}}}'
    return decode_json(Pod, text.encode())


@pytest.mark.parametrize(
    ("phase", "pods", "expected"),
    [
        ("", [], "Pending"),
        ("", ["Running"] * 3, "Pending"),
        ("Pending", ["Pending"] * 2, "Pending"),
        ("Pending", ["Pending"] * 3, "Scheduling"),
        ("Scheduling", ["Pending"] * 2, "Pending"),
        ("Scheduling", ["Running", "Running", "Pending"], "Scheduling"),
        ("Scheduling", ["Running", "Running", "Succeeded"], "Running"),
        ("Running", ["Running", "Running"], "Pending"),
        ("Running", ["Running", "Running", "Failed"], "Failed"),
        ("Running", ["Running", "Pending", "Failed"], "Scheduling"),
        ("Unknown", ["Running"] * 3, "Running"),
        ("Running", ["Succeeded"] * 3, "Finished"),
        ("Running", ["Succeeded", "Succeeded", "Succeeded", "Failed"], "Finished"),
        ("Finished", ["Failed"] * 3, "Finished"),
        ("Failed", ["Running"] * 3, "Failed"),
    ],
)
def test_the_phase_of_a_group_of_three(phase: str, pods: list[str], expected: str) -> None:
    status = next_status(PodGroupStatus(phase=phase), 3, [pod(each) for each in pods], NOW)
    assert status.phase == expected


def test_pods_are_counted_by_phase() -> None:
    status = next_status(PodGroupStatus(phase="Scheduling"), 3, [pod("Running"), pod("Running"), pod("Succeeded")], NOW)
    assert (status.running, status.succeeded, status.failed) == (2, 1, 0)


def test_a_group_that_has_its_pods_says_who_occupies_it_and_since_when() -> None:
    status = next_status(PodGroupStatus(phase="Pending"), 2, [pod("Pending", "b", "a"), pod("Pending")], NOW)
    assert status.occupied_by == "ns/a,ns/b"
    assert status.schedule_start_time == "2023-11-14T22:13:20Z"


def test_a_pod_without_owners_occupies_for_no_one() -> None:
    assert owners(pod("Pending")) == ""


DAYS = 24 * 3600.0


def reconcile(spec: dict[str, Any], status: dict[str, Any], at: float, *pods: Pod) -> ReconcileResult:
    item = {"metadata": {"name": "pg", "namespace": "ns"}, "spec": spec, "status": status}
    return PodGroupController(ManualClock(at)).reconcile(item, {"pods": pods})


def test_a_group_that_runs_no_pod_for_48_hours_gets_a_warning() -> None:
    status = msgspec.to_builtins(PodGroupStatus(phase="Scheduling", schedule_start_time="2023-11-14T22:13:20Z"))
    pods = [pod("Pending"), pod("Pending")]
    waiting = reconcile({"minMember": 2}, status, NOW + 1 * DAYS, *pods)
    assert waiting == ReconcileResult(due=1 * DAYS)
    late = reconcile({"minMember": 2}, status, NOW + 2 * DAYS, *pods)
    assert late == ReconcileResult(event=EventNote("Warning", "Timeout", "schedule time longer than 48 hours"))
    assert reconcile({"minMember": 2}, status, NOW + 2 * DAYS, pod("Running"), *pods).event is None


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, "spec.minMember is missing: write how many pods start together"),
        ({"minMember": 0}, "spec.minMember must be at least 1, got 0"),
        ({"minMember": -1}, "spec.minMember must be at least 1, got -1"),
        ({"minMember": "three"}, "Expected `int`, got `str`"),
    ],
)
def test_a_group_without_a_usable_number_is_reported_and_not_finished_at_once(
    spec: dict[str, Any], problem: str
) -> None:
    result = reconcile(spec, {"phase": "Scheduling"}, NOW)
    assert result.problem is not None
    assert problem in result.problem.note
    assert result.status is not None
    assert result.status["phase"] == "Pending"

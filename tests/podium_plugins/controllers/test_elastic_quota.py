"""`status.used` of an ElasticQuota is what the running pods of its namespace request."""

from __future__ import annotations

from typing import Any

import pytest

from podium.controllers.controller import ReconcileResult
from podium.framework.clock import SystemClock
from podium.kube import Pod
from podium.kube.decode import decode_json
from podium_plugins.controllers.elastic_quota import ElasticQuotaController, differs, problem_of, used

QUOTA = {"spec": {"min": {"cpu": "4", "nvidia.com/gpu": "1"}, "max": {"cpu": "6", "memory": "8Gi"}}}


def pod(phase: str, cpu: str = "2", overhead: str = "") -> Pod:
    extra = f',"overhead":{{"cpu":"{overhead}"}}' if overhead else ""
    containers = f'[{{"name":"c","resources":{{"requests":{{"cpu":"{cpu}","memory":"1Gi"}}}}}}]'
    text = f'{{"metadata":{{"name":"p"}},"spec":{{"containers":{containers}{extra}}},"status":{{"phase":"{phase}"}}}}'
    return decode_json(Pod, text.encode())


def test_every_resource_of_min_and_max_is_listed_where_nothing_runs() -> None:
    assert used(QUOTA, [pod("Pending")]) == {"cpu": "0", "memory": "0", "nvidia.com/gpu": "0"}


def test_running_pods_count_and_others_do_not() -> None:
    pods = [pod("Running"), pod("Running", "500m"), pod("Pending"), pod("Succeeded")]
    assert used(QUOTA, pods) == {"cpu": "2500m", "memory": "2Gi", "nvidia.com/gpu": "0"}


def test_overhead_counts_as_it_does_for_the_scheduler() -> None:
    assert used(QUOTA, [pod("Running", "1", overhead="250m")])["cpu"] == "1250m"


def test_amounts_are_compared_by_value() -> None:
    quota = {**QUOTA, "status": {"used": {"cpu": "2000m"}}}
    assert not differs(quota, {"cpu": "2"})
    assert differs(quota, {"cpu": "3"})
    assert differs(quota, {"cpu": "2", "memory": "0"})
    assert differs({"status": {"used": {"cpu": "broken"}}}, {"cpu": "2"})


def quota(name: str, least: object, most: object, created: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "q1", "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"min": {"cpu": least}, "max": {"cpu": most}}}


def test_a_status_that_differs_is_written_and_said() -> None:
    item = quota("q", 4, 6) | {"status": {"used": {"cpu": "9", "nvidia.com/gpu": "1"}}}
    result = ElasticQuotaController(SystemClock()).reconcile(item, {"pods": [pod("Running")], "elasticquotas": [item]})
    assert result.status == {"used": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": None}}  # null takes it away
    assert result.event == ("Normal", "Synced", "Elastic Quota q1/q synced successfully")
    right = item | {"status": {"used": {"cpu": "2", "memory": "1Gi"}}}
    again = ElasticQuotaController(SystemClock()).reconcile(right, {"pods": [pod("Running")], "elasticquotas": [right]})
    assert again == ReconcileResult()


@pytest.mark.parametrize(
    ("least", "most", "problem"),
    [
        ("lots", 6, 'spec.min.cpu: quantity "lots"'),
        (-1, 6, "spec.min.cpu must not be negative, got -1"),
        (8, 6, "spec.min is more than spec.max for cpu"),
        ([], 6, "Expected"),
    ],
)
def test_a_quota_that_cannot_be_meant_is_reported_and_still_counted(least: object, most: object, problem: str) -> None:
    item = quota("q", least, most)
    result = ElasticQuotaController(SystemClock()).reconcile(item, {"pods": [pod("Running")], "elasticquotas": [item]})
    assert result.problem is not None
    assert problem in result.problem.note
    assert result.status is not None
    assert result.status["used"]["cpu"] == "2"


def test_a_second_quota_of_a_namespace_is_reported_as_ignored() -> None:
    older, newer = quota("old", 4, 6), quota("new", 4, 6, "2026-02-01T00:00:00Z")
    assert problem_of(older, [newer, older]) == ""
    assert problem_of(newer, [newer, older]) == "it is ignored: ElasticQuota old is older; delete one of them"

"""`status.used` of an ElasticQuota is what the running pods of its namespace request."""

from __future__ import annotations

from podium.controllers.elastic_quota import differs, used
from podium.kube import Pod
from podium.kube.decode import decode_json

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

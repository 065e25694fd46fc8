"""Workloads make the pods that their controllers would: labels, names and claims."""

from typing import Any

import pytest

from podium.kube.kinds_around_pods import Workload
from podium.workloads.templates import make_pods
from tools.kit.builders import build


def workload(kind: str, **spec: Any) -> Workload:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c"}]}}
    data = {"kind": kind, "metadata": {"name": "w", "uid": "u"}, "spec": {"template": template, **spec}}
    return build(Workload, data)


@pytest.mark.parametrize("mode", ["", "Indexed"])
def test_pods_of_a_job_carry_its_name_and_only_those_of_an_indexed_one_a_number(mode: str) -> None:
    first, second = make_pods(workload("Job", completionMode=mode), 2).pods
    names = {"app", "job-name", "batch.kubernetes.io/job-name", "controller-uid", "batch.kubernetes.io/controller-uid"}
    index = {"batch.kubernetes.io/job-completion-index"} if mode else set()
    assert first.labels.keys() == names | index
    assert (first.labels["job-name"], first.labels["controller-uid"]) == ("w", "u")
    assert (first.labels == second.labels) == (not mode)


def test_a_stateful_set_counts_from_its_first_ordinal_and_makes_claims_of_that_number() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    made = make_pods(workload("StatefulSet", ordinals={"start": 5}, volumeClaimTemplates=claims), 2)
    assert [pod.name for pod in made.pods] == ["w-5", "w-6"]
    assert {"data-w-5", "data-w-6"} <= {each.name for each in made.others}
    assert made.pods[1].labels["apps.kubernetes.io/pod-index"] == "6"

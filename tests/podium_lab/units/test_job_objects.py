"""The Job of a plan: what its pods may do, how they reach the store, and what ends it."""

from __future__ import annotations

import pytest

from podium_lab.units.jobs import job_of
from podium_lab.units.run import JobOptions
from podium_lab.units.unit import UnitError

PLAN = "3f" * 32


def test_pods_have_no_rights_and_write_only_to_the_store() -> None:
    pod = job_of(PLAN, "/mnt/runs", 3, JobOptions(image="podium", claim="runs:mine"))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["args"] == ["--store", "/store", "--plan", PLAN, "--parts", "3"]
    assert {"name": "store", "mountPath": "/store", "subPath": "mine"} in container["volumeMounts"]


def test_an_object_store_needs_no_claim_and_takes_its_credentials_from_a_secret() -> None:
    job = job_of(PLAN, "s3://bucket/runs", 2, JobOptions(image="podium", secret="credentials"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][1] == "s3://bucket/runs"
    assert container["envFrom"] == [{"secretRef": {"name": "credentials"}}]
    with pytest.raises(UnitError, match="give --claim"):
        job_of(PLAN, "/mnt/runs", 2, JobOptions(image="podium"))


def test_a_job_for_kueue_waits_until_kueue_starts_it() -> None:
    job = job_of(PLAN, "s3://bucket/runs", 2, JobOptions(image="podium", local_queue="research"))
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
    assert "suspend" not in job_of(PLAN, "s3://bucket/runs", 2, JobOptions(image="podium"))["spec"]


def test_a_lost_node_is_no_failure_and_wrong_input_ends_the_job() -> None:
    spec = job_of(PLAN, "s3://bucket/runs", 2, JobOptions(image="podium"))["spec"]
    ignored, ended = spec["podFailurePolicy"]["rules"]
    assert (ignored["action"], ignored["onPodConditions"][0]["type"]) == ("Ignore", "DisruptionTarget")
    assert (ended["action"], ended["onExitCodes"]["values"]) == ("FailJob", [2])
    assert spec["completions"] == spec["parallelism"] == 2

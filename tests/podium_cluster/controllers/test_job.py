"""Jobs on an embedded cluster in virtual time."""

import asyncio
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podium_cluster.controllers.job_pods import format_indexes, parse_indexes
from tests.podium_cluster.apiserver.embedded import Embedded, in_embedded_cluster, job

Object = dict[str, Any]
QUICK = {"podium.dev/duration": "5s"}
FAILING = {"podium.dev/duration": "5s", "podium.dev/exit-code": "1"}


def conditions(found: Object) -> list[tuple[str, str, str]]:
    return [(each["type"], each["status"], each["reason"]) for each in found["status"].get("conditions", ())]


def active(cluster: Embedded) -> int:
    return sum(phase in ("Pending", "Running") for phase in cluster.phases().values())


async def ended(cluster: Embedded, name: str = "work", seconds: float = 3600) -> Object:
    await cluster.until(lambda: conditions(cluster.get("Job", name))[-1:] and _over(cluster, name), seconds=seconds)
    return cluster.get("Job", name)


def _over(cluster: Embedded, name: str) -> bool:
    return conditions(cluster.get("Job", name))[-1][0] in ("Complete", "Failed")


def test_a_job_runs_its_pods_to_completion_so_many_at_a_time() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(job(annotations=QUICK, parallelism=2, completions=5))
        while not conditions(cluster.get("Job", "work")):
            assert active(cluster) <= 2
            await asyncio.sleep(0.2)
        found = await ended(cluster)
        assert conditions(found) == [
            ("SuccessCriteriaMet", "True", "CompletionsReached"),
            ("Complete", "True", "CompletionsReached"),
        ]
        assert (found["status"]["succeeded"], found["status"]["uncountedTerminatedPods"]) == (5, {})
        assert found["status"]["completionTime"]
        assert all("finalizers" not in pod["metadata"] for pod in cluster.list("Pod"))
        assert ("work", "Completed", "Job completed") in cluster.events()

    in_embedded_cluster(story)


def test_failures_are_retried_with_growing_pauses_until_the_limit() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(job(annotations=FAILING, backoffLimit=2))
        found = await ended(cluster)
        assert conditions(found) == [
            ("FailureTarget", "True", "BackoffLimitExceeded"),
            ("Failed", "True", "BackoffLimitExceeded"),
        ]
        assert found["status"]["failed"] == 3
        born = sorted(pod["metadata"]["creationTimestamp"] for pod in cluster.list("Pod"))
        seconds = [int(each[-3:-1]) + 60 * int(each[-6:-4]) for each in born]
        pauses = [later - earlier for earlier, later in pairwise(seconds)]
        assert 15 <= pauses[0] <= 18  # about 6 s of running and 10 s of waiting
        assert 25 <= pauses[1] <= 28

    in_embedded_cluster(story)


def test_an_indexed_job_runs_each_index_once() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(job(annotations=QUICK, parallelism=3, completions=4, completionMode="Indexed"))
        found = await ended(cluster)
        assert found["status"]["completedIndexes"] == "0-3"
        pods = cluster.list("Pod")
        index = "batch.kubernetes.io/job-completion-index"
        assert sorted(pod["metadata"]["annotations"][index] for pod in pods) == ["0", "1", "2", "3"]
        for pod in pods:
            number = pod["metadata"]["labels"][index]
            assert pod["spec"]["hostname"] == f"work-{number}"
            assert pod["metadata"]["name"].startswith(f"work-{number}-")
            assert pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"

    in_embedded_cluster(story)


def test_a_job_without_completions_is_over_when_one_pod_has_succeeded_and_the_others_have_ended() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(job(annotations=QUICK, parallelism=3))
        found = await ended(cluster)
        assert found["status"]["succeeded"] == 3

    in_embedded_cluster(story)


def test_a_deadline_ends_the_job_and_its_pods() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(job(annotations={"podium.dev/duration": "1h"}, activeDeadlineSeconds=30))
        found = await ended(cluster)
        assert conditions(found)[-1] == ("Failed", "True", "DeadlineExceeded")
        assert active(cluster) == 0

    in_embedded_cluster(story)


def test_a_suspended_job_has_no_pods_until_it_is_resumed() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(job(annotations={"podium.dev/duration": "20s"}))
        await cluster.until(lambda: list(cluster.running()))
        cluster.change("Job", "work", lambda obj: obj["spec"].update(suspend=True))
        await cluster.until(lambda: not cluster.list("Pod"))
        found = cluster.get("Job", "work")
        assert conditions(found) == [("Suspended", "True", "JobSuspended")]
        assert "startTime" not in found["status"]
        cluster.change("Job", "work", lambda obj: obj["spec"].update(suspend=False))
        found = await ended(cluster)
        assert conditions(found)[0] == ("Suspended", "False", "JobResumed")
        assert "failed" not in found["status"]

    in_embedded_cluster(story)


def test_a_pod_that_somebody_deletes_counts_as_failed_and_is_replaced() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(job(annotations={"podium.dev/duration": "20s"}))
        await cluster.until(lambda: list(cluster.running()))
        cluster.delete("Pod", cluster.list("Pod")[0]["metadata"]["name"])
        found = await ended(cluster)
        assert (found["status"]["failed"], found["status"]["succeeded"]) == (1, 1)

    in_embedded_cluster(story)


def test_a_finished_job_goes_when_its_time_is_over_and_its_pods_with_it() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(job(annotations=QUICK, ttlSecondsAfterFinished=30))
        await ended(cluster)
        await asyncio.sleep(25)
        assert cluster.find("Job", "work") is not None
        await asyncio.sleep(10)
        assert cluster.find("Job", "work") is None
        assert not cluster.list("Pod")

    in_embedded_cluster(story)


def test_the_pods_of_a_job_that_is_gone_do_not_stay_because_of_its_finalizer() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(job(annotations={"podium.dev/duration": "1h"}, parallelism=3))
        await cluster.until(lambda: len(list(cluster.running())) == 3)
        cluster.delete("Job", "work", propagation="Background")
        await cluster.until(lambda: not cluster.list("Pod"))

    in_embedded_cluster(story)


def test_containers_that_are_restarted_too_often_end_the_job() -> None:
    async def story(cluster: Embedded) -> None:
        given = job(annotations=FAILING, backoffLimit=2)
        given["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
        cluster.create(given)
        found = await ended(cluster)
        assert conditions(found)[-1] == ("Failed", "True", "BackoffLimitExceeded")

    in_embedded_cluster(story)


@given(st.sets(st.integers(0, 40)))
def test_indexes_are_read_as_they_were_written(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes), 41) == indexes

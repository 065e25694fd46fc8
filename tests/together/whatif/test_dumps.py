"""`podium whatif` and `podium capacity` say what a real kube-scheduler then does, one rule at a time."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.whatif.fit import GATED, QUOTA, VICTIM
from tests.podium.cli.command import podium
from tools.parity.capacity_clusters import refusal
from tools.parity.dumps import DUMPS, Dump, Obj, workload
from tools.testbed import ControlPlane
from tools.testbed.apiclient import ApiError
from tools.testbed.build import MINOR

KINDS = (
    "nodes,pods,namespaces,services,replicasets,statefulsets,pdb,priorityclasses,pv,pvc,storageclasses,resourcequotas,"
    "limitranges,resourceclaims,resourceclaimtemplates,resourceslices,deviceclasses,runtimeclasses"
)
CONTROLLERS = (
    "deployment-controller", "replicaset-controller", "statefulset-controller", "daemonset-controller",
    "job-controller", "resourcequota-controller", "persistentvolume-binder-controller",
    "ephemeral-volume-controller", "resourceclaim-controller",
)  # fmt: skip
SETTINGS = ("PersistentVolumeClaim", "Service")
CAPPED = ("Deployment", "StatefulSet")
NOT_COUNTED = ("preemption", "held_and_bound", "daemon_set", "jobs")
"""Where another replica is not bound: preemption never counts as fitting, and gates hold it."""

Refused = dict[str, str]


@pytest.fixture(scope="module")
def plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane(priority_admission=True) as plane:
        plane.start_controller_manager(CONTROLLERS)
        plane.start_scheduler({"percentageOfNodesToScore": 100})
        yield plane


def started(plane: ControlPlane, dump: Dump, folder: Path) -> str:
    """The cluster of the dump on the API server; the file that kubectl makes of it."""
    plane.wipe()
    for each in plane.client.list("RuntimeClass"):
        plane.client.delete("RuntimeClass", each["metadata"]["name"])
    for each in dump.cluster:
        plane.client.create(each)
    for name in dump.terminating:
        plane.client.delete("Pod", name, grace_period_seconds=30)
    for quota in plane.client.list("ResourceQuota"):
        namespace, name = quota["metadata"]["namespace"], quota["metadata"]["name"]
        plane.client.poll("ResourceQuota", lambda found: all(each.get("status", {}).get("used") for each in found))
        assert plane.client.get("ResourceQuota", name, namespace)
    file = folder / "dump.json"
    file.write_text(plane.kubectl("get", KINDS, "-A", "-o", "json"))
    return str(file)


def asked(command: str, folder: Path, dump: str, question: list[Obj], *options: str) -> Any:
    file = folder / "question.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": question}))
    ran = podium(command, "-f", str(file), "--from", dump, "--kubernetes-version", MINOR, "-o", "json", *options)
    assert ran.code in (0, 1), ran.err
    return json.loads(ran.out)["answer"]


def created(plane: ControlPlane, question: list[Obj], judged: list[Obj]) -> tuple[list[Obj], Refused]:
    """Create what is asked about in the order in which it was judged, each once the one before has its answer."""
    before = {each["metadata"]["uid"] for each in plane.client.list("Pod")}
    refused: Refused = {}
    order = [each["pod"] for each in judged if each["verdict"] != QUOTA]
    refusals = [each for each in judged if each["verdict"] == QUOTA]

    def rank(item: Obj) -> int:
        key = key_of(item)
        if item["kind"] in SETTINGS or (len(refusals) > 1 and item["kind"] == "Pod"):
            return -1  # what a quota has left depends on who came before, so the order of the file counts
        return next((n for n, each in enumerate(order) if each == key or owned_by(each, item)), len(order))

    for each in sorted(question, key=rank):
        try:
            plane.client.create(each)
        except ApiError as error:
            refused[key_of(each)] = error.message
        settle(plane, 0.4 if each["kind"] == "Pod" else 1.2)
    settle(plane, 1.5)
    return [each for each in plane.client.list("Pod") if each["metadata"]["uid"] not in before], refused


def settle(plane: ControlPlane, quiet: float) -> None:
    """Wait until every pod has a node or a refusal, and nothing moves for a while."""
    last, since, end = None, time.monotonic(), time.monotonic() + 60.0
    while time.monotonic() < end:
        pods = plane.client.list("Pod")
        state = sorted((each["metadata"]["uid"], each["spec"].get("nodeName"), refusal(each)) for each in pods)
        if state != last or not all(node or why for _uid, node, why in state):
            last, since = state, time.monotonic()
        elif time.monotonic() - since > quiet:
            return
        time.sleep(0.1)
    raise AssertionError(f"not settled: {last}")


def key_of(item: Obj) -> str:
    return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"


def owned_by(pod: str, item: Obj) -> bool:
    """Whether the item is a workload whose pods have such names."""
    return item["kind"] not in ("Pod", "StatefulSet", *SETTINGS) and pod.startswith(f"{key_of(item)}-")


def group_of(pod: str, question: list[Obj]) -> str:
    """What names a pod in both: its own name, or that of the workload whose pods get random ones."""
    return next((key_of(each) for each in question if owned_by(pod, each)), pod)


@pytest.mark.parametrize("name", DUMPS)
def test_pods_go_where_whatif_says_and_wait_with_its_words(name: str, plane: ControlPlane, tmp_path: Path) -> None:
    dump = DUMPS[name]()
    judged = asked("whatif", tmp_path, started(plane, dump, tmp_path), dump.question, *dump.options)["pods"]
    pods, refused = created(plane, dump.question, judged)
    said: dict[str, list[Obj]] = {}
    for each in judged:
        if each["origin"] != VICTIM:
            said.setdefault(group_of(each["pod"], dump.question), []).append(each)
    found: dict[str, list[Obj]] = {}
    for each in pods:
        found.setdefault(group_of(key_of(each), dump.question), []).append(each)
    assert found.keys() | refused.keys() == said.keys()
    for key, answers in said.items():
        if key in refused:
            assert [each["verdict"] for each in answers] == [QUOTA], key
            assert answers[0]["after"]["message"] in refused[key]
        elif len(answers) == 1:
            agree(answers[0], found[key][0])
        else:
            fits = [each for each in answers if each["after"]["node"]]
            bound = [each for each in found[key] if each["spec"].get("nodeName")]
            assert len(bound) == len(fits), key
            words = {each["after"].get("message") for each in answers if each not in fits and each["verdict"] != QUOTA}
            assert {refusal(each) for each in found[key] if each not in bound} == words, key
    if dump.options:
        victims = {key for each in judged for key in each.get("victims", {}).get("pods", ())}
        left = {key_of(each) for each in plane.client.list("Pod")}
        assert victims == {key_of(each) for each in dump.cluster if each["kind"] == "Pod"} - left


def agree(answer: Obj, pod: Obj) -> None:
    """One pod's answer and what became of it; of equally good nodes any is right."""
    after, node = answer["after"], pod["spec"].get("nodeName")
    if answer["verdict"] == GATED:
        assert node is None
    elif node is None:
        assert (after["node"], after.get("message")) == (None, refusal(pod)), answer["pod"]
    else:
        assert node in (after["node"], *after.get("ties", ())), answer["pod"]


@pytest.mark.parametrize("name", [each for each in DUMPS if each not in NOT_COUNTED])
def test_one_replica_more_than_capacity_says_finds_no_node(name: str, plane: ControlPlane, tmp_path: Path) -> None:
    dump = DUMPS[name]()
    settings = [each for each in dump.question if each["kind"] in SETTINGS]
    capped = next((each for each in dump.question if each["kind"] in CAPPED), None)
    if capped is None:
        first = next(each for each in dump.question if each["kind"] == "Pod")
        capped = workload("Deployment", "cap", 1, namespace=first["metadata"]["namespace"])
        capped["spec"]["selector"]["matchLabels"] = first["metadata"]["labels"]
        capped["spec"]["template"] = {"metadata": {"labels": first["metadata"]["labels"]}, "spec": first["spec"]}
    answer = asked("capacity", tmp_path, started(plane, dump, tmp_path), [*settings, capped])
    assert 0 < answer["replicas"] < 100
    capped["spec"]["replicas"] = answer["replicas"] + 1
    pods, _ = created(plane, [*settings, capped], [])
    bound = Counter(each["spec"]["nodeName"] for each in pods if each["spec"].get("nodeName"))
    assert bound.total() == answer["replicas"]
    words = [refusal(each) for each in pods if not each["spec"].get("nodeName")]
    assert words == ([] if answer["reached"] == QUOTA else [answer["stop"]["message"]])

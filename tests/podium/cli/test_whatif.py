"""`podium whatif` and `podium capacity` on the command line: exit codes, JSON, the order of changes, and bad input."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.podium.cli.command import podium
from tests.podium.cli.texts import SAMPLE, documents, node, pod, requesting, write

PRICES = """
types:
  - {name: big, price: 2.5, allocatable: {cpu: 64, memory: 256Gi, pods: 58, nvidia.com/gpu: 8}, labels: {disk: nvme}}
"""


def answer(*words: str, code: int = 0, stdin: str = "") -> Any:
    ran = podium(*words, "-o", "json", stdin=stdin)
    assert ran.code == code, ran.err
    return json.loads(ran.out)


def sentence(*words: str, stdin: str = "") -> str:
    ran = podium(*words, stdin=stdin)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran
    return ran.err.strip()


def test_the_document_has_its_schema_state_question_and_answer() -> None:
    found = answer("whatif", "--from", SAMPLE, "--kubernetes-version", "1.36")
    assert list(found) == ["schema", "state", "question", "answer"]
    assert found["schema"] == "podium.whatif/1"
    state = {
        name: found["state"][name] for name in ("source", "at", "nodes", "pods", "missingKinds", "kubernetesVersion")
    }
    assert state == {
        "source": "dump", "at": None, "nodes": 8, "pods": 19, "missingKinds": [], "kubernetesVersion": "1.36",
    }  # fmt: skip
    assert found["question"] == {"changes": [], "given": [], "pending": True}
    checkout = next(each for each in found["answer"]["pods"] if each["pod"] == "shop/checkout")
    assert (checkout["origin"], checkout["verdict"], checkout["after"]["node"]) == ("pending", "blocked", None)
    assert checkout["after"]["message"].startswith("0/8 nodes are available: ")
    assert answer("capacity", "--like", "shop/web-1", "--from", SAMPLE)["schema"] == "podium.capacity/1"


def test_bought_nodes_are_named_and_priced(tmp_path: Path) -> None:
    catalog = write(tmp_path, "prices.yaml", PRICES)
    found = answer("whatif", "--from", SAMPLE, "--add-nodes", "2=big", "--catalog", catalog)
    (change,) = found["question"]["changes"]
    assert change["addNodes"]["names"] == ["big-0", "big-1"]
    assert found["answer"]["cost"] == {"perHour": 5.0, "currency": "USD"}
    bought = answer("whatif", "--from", SAMPLE, "--unblock", "--catalog", catalog)["answer"]
    assert (bought["price"], bought["proved"], [each["type"] for each in bought["nodes"]]) == (2.5, "optimal", ["big"])


def test_pods_that_wait_for_the_same_reason_share_a_sentence(tmp_path: Path) -> None:
    dump, asked = write(tmp_path, "dump.yaml", node("n1")), write(tmp_path, "pod.yaml", pod("w", spec=requesting("3")))
    out = podium("whatif", "-f", asked, "--replicas", "3", "--from", dump).out
    assert out.count("Insufficient cpu") == 1
    assert "default/w-1, default/w-2: 0/1 nodes are available" in out


def test_changes_apply_in_the_order_in_which_they_are_written(tmp_path: Path) -> None:
    dump = write(tmp_path, "dump.yaml", documents(node("n1"), pod("web")))
    assert podium("whatif", "--from", dump, "--cordon", "n1", "--uncordon", "n1").code == 0
    assert podium("whatif", "--from", dump, "--uncordon", "n1", "--cordon=n1").code == 1
    change = write(tmp_path, "change.yaml", "changes:\n- {change: uncordon, nodes: 'n*'}\n")
    assert podium("whatif", "--from", dump, "--cordon", "n1", "--change", change).code == 0
    assert podium("whatif", "--from", dump, "--change", change, "--cordon", "n1").code == 1


def test_any_field_can_be_set(tmp_path: Path) -> None:
    dump = write(tmp_path, "dump.yaml", documents(node("n1", cpu=1), pod("web", spec=requesting("3"))))
    assert podium("whatif", "--from", dump).code == 1
    assert podium("whatif", "--from", dump, "--set", "nodes/n1.status.allocatable.cpu=4").code == 0
    assert podium("whatif", "--from", dump, "--allocatable", "n1:cpu=4").code == 0
    assert "there is no such pod" in sentence("whatif", "--from", dump, "--set", "pods/default/x.spec.priority=1")


def test_the_export_of_kube_scheduler_simulator_is_read_with_its_configuration(tmp_path: Path) -> None:
    export = {
        "pods": [{"metadata": {"name": "web", "namespace": "default"}, "spec": {"schedulerName": "mine"}}],
        "nodes": [{"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}}}],
        "namespaces": [],
        "schedulerConfig": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": "mine"}],
        },
    }
    file = write(tmp_path, "export.bin", json.dumps(export))
    found = answer("whatif", "--from", file)
    assert (found["state"]["source"], found["answer"]["summary"]["fits"]) == ("kss", 1)
    assert answer("explain", "web", "--from", file)["state"]["source"] == "kss"


def test_a_snapshot_of_kai_is_read_whatever_its_name(tmp_path: Path) -> None:
    raw = {
        "pods": [{"metadata": {"name": "web", "namespace": "default"}}],
        "nodes": [{"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}}}],
    }
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("snapshot.json", json.dumps({"config": {}, "schedulerParams": {}, "rawObjects": raw}))
    file = tmp_path / "snapshot"
    file.write_bytes(data.getvalue())
    assert answer("whatif", "--from", str(file))["state"]["source"] == "kai"


def test_a_pod_without_requests_stops_at_the_pod_slots(tmp_path: Path) -> None:
    found = answer("capacity", "-f", write(tmp_path, "pod.yaml", pod("cap")), "--from", SAMPLE)["answer"]
    assert (found["replicas"], found["stop"]["first"]) == (6 * 58 - 16, "pods")


def test_fewer_than_were_asked_for_ends_with_one(tmp_path: Path) -> None:
    file = write(tmp_path, "pod.yaml", pod("cap", spec=requesting("500m")))
    assert podium("capacity", "-f", file, "--from", SAMPLE, "--replicas", "10").code == 0
    assert podium("capacity", "-f", file, "--from", SAMPLE, "--replicas", "99").code == 1
    never = write(tmp_path, "never.yaml", pod("cap", spec=requesting("1", "nodeSelector: {tier: none}")))
    found = answer("capacity", "-f", never, "--from", SAMPLE, code=1)["answer"]
    assert found["replicas"] == 0
    assert "didn't match Pod's node affinity/selector" in found["stop"]["message"]
    assert found["stop"]["notes"] == ["no node has the label tier=none of its node selector"]
    (blocked,) = answer("whatif", "-f", never, "--from", SAMPLE, code=1)["answer"]["pods"]
    assert blocked["notes"] == ["no node has the label tier=none of its node selector"]


def test_a_daemon_set_has_one_pod_on_each_node_that_takes_it(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "c", "image": "agent"}]}}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    whole = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": spec}
    file = write(tmp_path, "agent.yaml", json.dumps(whole))
    found = answer("capacity", "-f", file, "--from", SAMPLE)["answer"]
    assert (found["replicas"], {each["replicas"] for each in found["nodes"]}) == (7, {1})
    assert answer("whatif", "-f", file, "--from", SAMPLE)["answer"]["summary"]["fits"] == 7


def test_a_mix_comes_in_its_proportion(tmp_path: Path) -> None:
    web, db = (write(tmp_path, f"{name}.yaml", pod(name, spec=requesting("250m"))) for name in ("web", "db"))
    found = answer("capacity", "--mix", f"3:{web}", "--mix", f"1:{db}", "--from", SAMPLE, "--replicas", "20")["answer"]
    assert [(each["name"], each["share"], each["replicas"]) for each in found["templates"]] == [
        ("web", 3, 15),
        ("db", 1, 5),
    ]


def test_cluster_capacitys_document_is_printed(tmp_path: Path) -> None:
    file = write(tmp_path, "pod.yaml", pod("cap", spec=requesting("500m")))
    found = answer("capacity", "-f", file, "--from", SAMPLE, "--format", "cluster-capacity")
    assert (found["status"]["replicas"], found["status"]["failReason"]["failType"]) == (16, "Unschedulable")
    assert {"reason": "Insufficient cpu", "count": 6} in found["status"]["pods"][0]["failSummary"]


@pytest.mark.parametrize(
    "command",
    [("whatif",), ("whatif", "--each"), ("whatif", "--drain", "worker-b2"), ("capacity", "--like", "shop/web-1")],
)
def test_tables_fit_eighty_columns(command: tuple[str, ...]) -> None:
    ran = podium(*command, "--from", SAMPLE, columns=80)
    rows = [line for line in ran.out.splitlines() if "  " in line.strip() and not line.startswith(" ")]
    assert rows
    assert max(map(len, rows)) <= 80


def test_the_schema_describes_the_answer() -> None:
    questions = (["whatif"], ["whatif", "--each"], ["whatif", "--unblock"], ["capacity"], ["explain"])
    for words in questions:
        found = json.loads(podium(*words, "--schema").out)
        assert found["$id"] == f"podium.{words[0]}/1"
        (whole,) = [each for each in found["$defs"].values() if "schema" in each.get("properties", {})]
        assert {"schema", "state", "question"} <= set(whole["properties"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("whatif", "--drain", "worker-x*"), "--drain worker-x*: no node of that name; there are worker-a1, "),
        (("whatif", "--cordon", "-l nope=1"), "--cordon -l nope=1: no node has these labels"),
        (("whatif", "--taint", "worker-a1"), "--taint worker-a1: write --taint PATTERN:KEY=VALUE:EFFECT"),
        (("whatif", "--taint", "worker-a1:k=v:Never"), '"Never" is no effect; write NoSchedule'),
        (("whatif", "--add-nodes", "0=big"), "--add-nodes 0=big: write --add-nodes N=TYPE"),
        (("whatif", "--add-nodes", "1=big"), "give the catalog that has this type with --catalog"),
        (("whatif", "--scale", "web=3"), "--scale web=3: write --scale NAMESPACE/KIND/NAME=N"),
        (("whatif", "--unblock"), "--unblock buys nodes of a catalog"),
        (("whatif", "--running"), "--running and --replace-all compare two configurations"),
        (("whatif", "--replicas", "3"), "--replicas is how many pods of what -f holds"),
        (("capacity",), "no pod is given; write -f pod.yaml"),
        (("capacity", "--like", "shop/web-1", "--replicas", "0"), "--replicas 0: ask for at least one"),
        (("capacity", "--like", "shop/nobody"), "--like shop/nobody: there is no pod shop/nobody"),
        (("capacity", "--mix", "web.yaml"), "--mix web.yaml: write N:FILE"),
        (("capacity", "--namespace-max", "shop"), "no LimitRange of type Pod with a max is known there"),
    ],
)
def test_a_question_that_cannot_be_asked_is_one_sentence(words: tuple[str, ...], said: str) -> None:
    assert said in sentence(*words, "--from", SAMPLE)


def test_files_that_hold_no_question_are_named(tmp_path: Path) -> None:
    service = write(tmp_path, "service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n")
    two = write(tmp_path, "two.yaml", documents(pod("a"), pod("b")))
    unknown = write(tmp_path, "change.yaml", "- change: cordon\n  nodes: worker-a1\n  colour: red\n")
    text = write(tmp_path, "notes.txt", "hello\n")
    assert "no pod in it" in sentence("whatif", "-f", service, "--from", SAMPLE)
    assert "2 pods or workloads in it; give one, or several files with --mix" in sentence(
        "capacity", "-f", two, "--from", SAMPLE
    )
    assert sentence("whatif", "--change", unknown, "--from", SAMPLE).startswith(f"{unknown}:3:3: ")
    assert "notes.txt" in sentence("whatif", "--from", text)


GROUP = """
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {{name: g}}
spec: {{schedulingPolicy: {{gang: {{minCount: {0}}}}}}}
"""
GANGS = ("--feature-gates", "GenericWorkload=true,TopologyAwareWorkloadScheduling=true", "--kubernetes-version", "1.37")


@pytest.mark.parametrize(("least", "nodes"), [(2, ["n1", "n1", None]), (3, [None, None, None])])
def test_a_pod_group_is_judged_whole_and_the_next_pod_after_it(
    least: int, nodes: list[str | None], tmp_path: Path
) -> None:
    """The messages are those of kube-scheduler 1.37."""
    member = requesting("2", "schedulingGroup: {podGroupName: g}")
    pods = [pod(f"m{number}", spec=member) for number in range(3)]
    asked = write(tmp_path, "pods.yaml", documents(GROUP.format(least), *pods, pod("later", spec=requesting("1"))))
    dump = write(tmp_path, "dump.yaml", node("n1", cpu=5))
    found = answer("whatif", "-f", asked, "--from", dump, *GANGS, code=1)["answer"]["pods"]
    assert [each["after"]["node"] for each in found] == [*nodes, "n1"]
    whole = (
        "pod group is unschedulable, pod group is unschedulable, 0/1 placements are available, first placement status: "
        "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, "
        "pod group preemption: No preemption victims found for incoming preemptor"
    )
    if least == 3:
        assert found[0]["after"]["message"] == whole
    assert found[2]["after"]["message"] == "0/1 nodes are available: 1 Insufficient cpu."

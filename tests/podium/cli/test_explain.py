import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from tests.podium.cli.command import podium
from tests.podium.cli.texts import HEADER, SAMPLE, documents, node, pod, requesting, write
from tests.podium.placement.devices import worlds
from tools.testbed.objects import make_node, make_pod

NODES = documents(node("n1"), node("n2", cpu=8))


def data_of(*arguments: str, stdin: str = "") -> dict[str, Any]:
    data: dict[str, Any] = json.loads(podium("explain", *arguments, "-o", "json", stdin=stdin).out)
    return data


def test_a_pod_that_fits_goes_to_the_best_node() -> None:
    ran = podium("explain", "shop/web-4", "--from", SAMPLE)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "shop/web-4 fits: goes to worker-b2 (best of 6 feasible nodes out of 8)"


def test_nodes_that_were_rejected_are_grouped_by_reason_with_the_most_frequent_first() -> None:
    lines = podium("explain", "analytics/training", "--from", SAMPLE).out.splitlines()
    table = lines[lines.index("Rejected") + 3 : lines.index("What would unblock it")]
    assert [line.split()[:2] for line in table if line[:5].strip()] == [
        ["4", "NodeAffinity"],
        ["2", "NodeResourcesFit"],
        ["1", "NodeUnschedulable"],
        ["1", "NodeResourcesFit"],
    ]
    assert "worker-a1, worker-a2, worker-b1, worker-c1" in table[0]


def test_what_would_unblock_a_pod_follows_with_the_closest_node_first() -> None:
    lines = podium("explain", "analytics/training", "--from", SAMPLE).out.splitlines()
    first = lines[lines.index("What would unblock it") + 3]
    assert first.split(maxsplit=1) == ["gpu-b1", "1 more nvidia.com/gpu (asks for 2, 1 of 1 free)"]
    remedies = data_of("analytics/training", "--from", SAMPLE)["remedies"]
    assert remedies[0] == {"node": "gpu-b1", "changes": ["1 more nvidia.com/gpu (asks for 2, 1 of 1 free)"]}


def test_the_podium_shows_three_nodes_with_shares_that_sum_up_and_the_winner_marked() -> None:
    lines = podium("explain", "shop/web-4", "--from", SAMPLE).out.splitlines()
    rows = [line.split() for line in lines[-3:]]
    assert [row[0] for row in rows] == ["*1", "2", "3"]
    assert rows[0][1] == "worker-b2"
    for row in rows:
        assert sum(map(int, row[2:-1])) == int(row[-1])
    assert [int(row[-1]) for row in rows] == sorted((int(row[-1]) for row in rows), reverse=True)


def test_a_pod_that_fits_nowhere_exits_1_with_the_sentence_kube_scheduler_would_write() -> None:
    ran = podium("explain", "analytics/training", "--from", SAMPLE)
    assert ran.code == 1
    assert ran.out.startswith("analytics/training fits nowhere: 0/8 nodes are available: ")
    assert "Best nodes" not in ran.out


def test_preemption_is_told_with_node_and_victims_and_still_exits_1() -> None:
    ran = podium("explain", "shop/checkout", "--from", SAMPLE)
    assert ran.code == 1
    assert ran.out.splitlines()[1] == "Preemption would make room on worker-b2 by evicting analytics/report-3."
    assert data_of("shop/checkout", "--from", SAMPLE)["preemption"] == {
        "node": "worker-b2",
        "victims": ["analytics/report-3"],
    }


def test_json_has_exactly_the_documented_fields() -> None:
    data = data_of("shop/web-4", "--from", SAMPLE)
    assert list(data) == [
        "pod",
        "profile",
        "selected",
        "message",
        "preemption",
        "nodes",
        "remedies",
        "kubernetesVersion",
        "schema",
        "state",
        "question",
    ]
    assert (data["schema"], data["question"]) == ("podium.explain/1", {"pod": "shop/web-4"})
    assert (data["state"]["source"], data["state"]["nodes"], data["state"]["pods"]) == ("dump", 8, 19)
    assert data["kubernetesVersion"] == "1.37"
    assert {key: data[key] for key in list(data)[:5]} == {
        "pod": "shop/web-4",
        "profile": "default-scheduler",
        "selected": "worker-b2",
        "message": None,
        "preemption": None,
    }
    assert [list(each) for each in data["nodes"]] == [
        ["name", "feasible", "plugin", "reasons", "scores", "total"] for _ in range(8)
    ]
    gpu = next(each for each in data["nodes"] if each["name"] == "gpu-b1")
    assert (gpu["feasible"], gpu["plugin"], gpu["scores"], gpu["total"]) == (False, "TaintToleration", {}, None)
    assert len(gpu["reasons"]) == 1
    best = next(each for each in data["nodes"] if each["name"] == "worker-b2")
    assert (best["feasible"], best["plugin"], best["reasons"]) == (True, None, [])
    assert sum(best["scores"].values()) == best["total"]


def test_yaml_is_the_same_data() -> None:
    ran = podium("explain", "shop/checkout", "--from", SAMPLE, "-o", "yaml")
    assert ran.code == 1
    assert yaml.safe_load(ran.out) == data_of("shop/checkout", "--from", SAMPLE)


def test_a_pod_that_runs_already_is_judged_as_if_it_were_not_placed() -> None:
    cluster = documents(NODES, pod("web", spec=requesting("7", "nodeName: n2")))
    assert data_of("web", "--from", "-", stdin=cluster)["selected"] == "n2"


def test_other_pods_take_their_room_even_without_a_uid() -> None:
    full = [pod(f"other-{i}", spec=requesting("4", "nodeName: n2")) for i in range(2)]
    data = data_of("web", "--from", "-", stdin=documents(NODES, *full, pod("web", spec=requesting("1"))))
    assert data["selected"] == "n1"


def test_one_feasible_node_is_not_scored() -> None:
    ran = podium("explain", "web", "--from", "-", stdin=documents(NODES, pod("web", spec=requesting("6"))))
    assert ran.out.splitlines()[0] == "default/web fits: goes to n2 (the only feasible node out of 2)"
    assert "Best nodes" not in ran.out


def test_a_gated_pod_is_held_back() -> None:
    spec = "schedulingGates: [{name: quota}], containers: [{name: c, image: app}]"
    ran = podium("explain", "web", "--from", "-", stdin=documents(NODES, pod("web", spec=spec)))
    assert ran.code == 1
    assert ran.out.startswith("default/web is held back: ")
    assert "quota" in ran.out


def test_a_cluster_without_nodes_answers_no() -> None:
    ran = podium("explain", "web", "--from", "-", stdin=pod("web"))
    assert (ran.code, ran.out) == (1, "default/web fits nowhere: no nodes available to schedule pods\n")


def test_several_files_make_one_cluster_and_the_later_version_counts(tmp_path: Path) -> None:
    first = write(tmp_path, "nodes.yaml", NODES)
    second = write(tmp_path, "more.yaml", documents(node("n1", cpu=16), pod("web", spec=requesting("12"))))
    assert data_of("web", "--from", first, "--from", second)["selected"] == "n1"


def test_lists_as_kubectl_prints_them_are_read() -> None:
    items = [yaml.safe_load(each) for each in (node("n1"), pod("web"))]
    assert data_of("web", "--from", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))[
        "selected"
    ]


def test_the_only_pod_of_dash_f_need_not_be_named(tmp_path: Path) -> None:
    file = write(tmp_path, "pod.yaml", pod("new", namespace="shop"))
    assert data_of("-f", file, "--from", SAMPLE)["pod"] == "shop/new"


def test_dash_f_goes_before_the_version_in_the_cluster(tmp_path: Path) -> None:
    file = write(tmp_path, "pod.yaml", pod("web", spec=requesting("6")))
    cluster = documents(NODES, pod("web", spec=requesting("60")))
    assert data_of("web", "-f", file, "--from", "-", stdin=cluster)["selected"] == "n2"


def test_the_pods_scheduler_name_picks_the_profile(tmp_path: Path) -> None:
    profiles = "profiles: [{schedulerName: default-scheduler}, {schedulerName: packing}]"
    config = write(tmp_path, "scheduler.yaml", HEADER + profiles)
    cluster = documents(NODES, pod("web", spec="schedulerName: packing, containers: [{name: c}]"))
    assert data_of("web", "--from", "-", "--config", config, stdin=cluster)["profile"] == "packing"


def test_a_warning_of_the_configuration_is_shown_and_changes_nothing(tmp_path: Path) -> None:
    weights = "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 0}]}}}]"
    config = write(tmp_path, "scheduler.yaml", HEADER + weights)
    ran = podium("explain", "shop/web-4", "--from", SAMPLE, "--config", config)
    assert ran.code == 0
    assert ran.err.startswith(f"warning: {config}:3: profiles[0].plugins.score.enabled[0].weight: ")


def test_skipped_kinds_are_counted_only_when_asked_for() -> None:
    other = "\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    cluster = documents(NODES, pod("web"), other, other)
    assert podium("explain", "web", "--from", "-", stdin=cluster).err == ""
    assert podium("explain", "web", "--from", "-", "-v", stdin=cluster).err == (
        "skipped 2 objects that scheduling has no use for: 2 apps/v1 Deployment\n"
    )


def test_with_parity_the_search_ends_where_kube_scheduler_would_end_it() -> None:
    cluster = documents(*(node(f"n{i}") for i in range(300)), pod("web"))
    assert sum(each["feasible"] for each in data_of("web", "--from", "-", stdin=cluster)["nodes"]) == 300
    ran = podium("explain", "web", "--from", "-", "--parity", stdin=cluster)
    assert "(best of 144 feasible nodes out of 300)" in ran.out
    assert "not looked at: enough nodes had been found" in ran.out


@pytest.mark.parametrize("columns", [30, 60, 80, 200])
def test_no_number_is_cut_however_narrow_the_terminal(columns: int) -> None:
    total = str(max(each["total"] or 0 for each in data_of("shop/web-4", "--from", SAMPLE)["nodes"]))
    lines = podium("explain", "shop/web-4", "--from", SAMPLE, columns=columns).out.splitlines()
    assert all(len(line) <= columns for line in lines[1:])
    assert "…" not in "".join(lines)
    assert total in " ".join(lines).split()


def test_a_pipe_gets_no_colour_and_no_trailing_blanks() -> None:
    out = podium("explain", "shop/checkout", "--from", SAMPLE).out
    assert "\x1b" not in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_a_plugin_that_raises_is_shown_with_its_traceback_when_asked(tmp_path: Path) -> None:
    (tmp_path / "fussy_plugin.py").write_text(
        "from podium import Plugin\n\n\nclass Fussy(Plugin):\n    def filter_node(self, cycle, node):\n"
        "        return cycle.pod.labels['colour'] == 'red'\n"
    )
    objects = tmp_path / "cluster.yaml"
    objects.write_text(
        "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}\n"
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
    )
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Fussy}]}}}]\n"
    )
    arguments = ["explain", "p", "--from", str(objects), "--config", str(config), "--plugin", "fussy_plugin:Fussy"]
    with mock.patch.object(sys, "path", [str(tmp_path), *sys.path]):
        ran = podium(*arguments, "-v")
        quiet = podium(*arguments)
    assert ran.code == quiet.code == 1
    assert "plugin \"Fussy\" failed at Filter for pod default/p on node n1: KeyError: 'colour'" in ran.err
    assert "cycle.pod.labels['colour']" in ran.err
    assert "Traceback" not in quiet.err
    assert "-v shows where it failed" in " ".join(quiet.err.split())


@pytest.mark.parametrize(
    ("command", "part"),
    [
        (("explain", "shop/web-4"), "selected"),
        (("whatif", "--drain", "worker-a1"), "answer"),
        (("capacity", "--like", "shop/web-1", "--replicas", "2"), "answer"),
    ],
)
def test_what_a_plugin_prints_is_no_part_of_the_answer(command: tuple[str, ...], part: str, tmp_path: Path) -> None:
    file = tmp_path / "talks.py"
    file.write_text(
        "from podium import Plugin\nprint('loaded')\nclass Talks(Plugin):\n"
        "    def score_node(self, cycle, node):\n        print(node.name)\n        return 1\n"
    )
    ran = podium(*command, "--from", SAMPLE, "--plugin", str(file), "-o", "json")
    assert part in json.loads(ran.out)
    assert "loaded\n" in ran.err
    assert "worker-b2\n" in ran.err


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ("device.driver ==", ": CEL compile error: compilation failed: ERROR: <input>:1:17: Syntax error"),
        ("device.nope", ": CEL compile error: compilation failed: ERROR: <input>:1:7: undefined field 'nope'"),
        (
            "(" * 500 + "true" + ")" * 500,
            ": CEL compile error: compilation failed: ERROR: <input>:-1:0: expression",
        ),
        ("[1, 2].all(x, x / 0 == 1)", " on device drv.example.com/p/d: CEL runtime error: division by zero"),
    ],
)
def test_a_selector_of_devices_that_is_none_is_named(selector: str, problem: str, tmp_path: Path) -> None:
    asked = worlds.claim(worlds.request(selectors=worlds.selectors(selector)), name="a")
    asked["metadata"]["namespace"] = "default"
    user = make_pod("p", resourceClaims=[{"name": "a", "resourceClaimName": "a"}])
    objects = [make_node("n1"), worlds.device_class(), worlds.slice_("s", worlds.device("d")), asked, user]
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump_all(objects))
    ran = podium("explain", "default/p", "--from", str(tmp_path / "dump.yaml"))
    assert ran.code == 1
    assert f"claim default/a: selector #0{problem}" in ran.out
    assert "Traceback" not in ran.err


GPU_POD = make_pod("p", resourceClaims=[{"name": "a", "resourceClaimTemplateName": "t"}])
GPU_TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t", "namespace": "default"},
    "spec": {"spec": worlds.claim(worlds.request(count=2))["spec"]},
}
GPU_SLICE = worlds.slice_("s", worlds.device("d1"), worlds.device("d2"), worlds.device("d3"))


def test_a_pod_that_is_not_in_the_cluster_yet_gets_claims_of_its_templates(tmp_path: Path) -> None:
    cluster, asked = tmp_path / "cluster.yaml", tmp_path / "pod.yaml"
    cluster.write_text(yaml.safe_dump_all([make_node("n1"), worlds.device_class(), GPU_SLICE, GPU_TEMPLATE]))
    asked.write_text(yaml.safe_dump(GPU_POD))
    ran = podium("explain", "-f", str(asked), "--from", str(cluster))
    assert ran.code == 0
    assert "claim default/p-a, request r: drv.example.com/p/d1, drv.example.com/p/d2" in ran.out.splitlines()


def test_a_pod_of_the_cluster_waits_for_the_claims_that_its_controller_makes(tmp_path: Path) -> None:
    waiting = make_pod("p", **GPU_POD["spec"])
    waiting["metadata"]["uid"] = "u"
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all([make_node("n1"), worlds.device_class(), GPU_SLICE, GPU_TEMPLATE, waiting]))
    ran = podium("explain", "default/p", "--from", str(cluster))
    assert ran.code == 1
    assert ran.out.splitlines()[0] == 'default/p is held back: pod "default/p": ResourceClaim not created yet'


def test_nodes_that_fit_have_a_list_of_devices_if_the_pod_has_claims_and_no_others_have(tmp_path: Path) -> None:
    asks_for_nothing = {**worlds.claim(name="a"), "spec": {"devices": {}}}
    asks_for_nothing["metadata"]["namespace"] = "default"
    user = make_pod("p", resourceClaims=[{"name": "a", "resourceClaimName": "a"}], nodeSelector={"disk": "ssd"})
    objects = [make_node("n1"), make_node("n2", labels={"disk": "ssd"}), asks_for_nothing, user]
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump_all(objects))
    nodes = data_of("p", "--from", str(tmp_path / "dump.yaml"))["nodes"]
    assert [each.get("devices") for each in nodes] == [None, []]


def test_devices_of_the_version_before_are_read(tmp_path: Path) -> None:
    asked = worlds.claim(name="a")
    asked["metadata"]["namespace"] = "default"
    user = make_pod("p", resourceClaims=[{"name": "a", "resourceClaimName": "a"}])
    older = [{**each, "apiVersion": "resource.k8s.io/v1beta2"} for each in (worlds.device_class(), GPU_SLICE, asked)]
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump_all([make_node("n1"), *older, user]))
    (node_answer,) = data_of("p", "--from", str(tmp_path / "dump.yaml"))["nodes"]
    assert [each["device"] for each in node_answer["devices"]] == ["d1"]


def test_a_known_kind_in_a_version_that_is_not_read_is_named(tmp_path: Path) -> None:
    oldest = {**worlds.device_class(), "apiVersion": "resource.k8s.io/v1beta1"}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump_all([make_node("n1"), make_pod("p"), oldest, deployment]))
    ran = podium("explain", "p", "--from", str(tmp_path / "dump.yaml"))
    assert ran.code == 0
    left_out = "1 resource.k8s.io/v1beta1 DeviceClass left out: only resource.k8s.io/v1 is read; "
    assert ran.err.startswith(left_out)
    assert "Deployment" not in ran.err

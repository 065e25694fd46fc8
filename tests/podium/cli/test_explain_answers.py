"""What explanations say where less is known than the scheduler knows, where decisions fail, and of all pods at once."""

import json
from pathlib import Path
from unittest import mock

import pytest
import yaml

from podium.cli.show import text_of
from podium.engine.explain import explain
from tests.podium.cli.command import podium
from tests.podium.cli.texts import HEADER, SAMPLE, documents, node, pod, requesting, write
from tests.podium.placement.devices import worlds
from tools.kit.builders import make_node as built_node
from tools.kit.builders import make_pod as built_pod
from tools.testbed.objects import make_node, make_pod

TWO = documents(node("n1"), node("n2"), pod("web"))


def failing_decision(folder: Path) -> str:
    asked = worlds.claim(worlds.request(selectors=worlds.selectors("device.nope")), name="a")
    asked["metadata"]["namespace"] = "default"
    user = make_pod("p", resourceClaims=[{"name": "a", "resourceClaimName": "a"}])
    objects = [make_node("n1"), worlds.device_class(), worlds.slice_("s", worlds.device("d")), asked, user]
    (folder / "dump.yaml").write_text(yaml.safe_dump_all(objects))
    return str(folder / "dump.yaml")


def test_a_decision_that_ends_in_an_error_is_the_same_document(tmp_path: Path) -> None:
    dump = failing_decision(tmp_path)
    ran = podium("explain", "p", "--from", dump, "-o", "json")
    data = json.loads(ran.out)
    usual = json.loads(podium("explain", "shop/web-4", "--from", SAMPLE, "-o", "json").out)
    assert (ran.code, list(data)) == (1, list(usual))
    assert (data["selected"], data["nodes"]) == (None, [])
    assert data["message"].startswith('running "DynamicResources" filter plugin: claim default/a: selector #0: CEL ')
    table = podium("explain", "p", "--from", dump)
    assert (table.code, table.out) == (1, f"default/p cannot be judged: {data['message']}\n")


def test_extenders_that_were_not_asked_are_named(tmp_path: Path) -> None:
    extender = 'extenders: [{urlPrefix: "http://127.0.0.1:9/scheduler", filterVerb: filter}]'
    config = write(tmp_path, "scheduler.yaml", HEADER + extender)
    ran = podium("explain", "web", "--from", "-", "--config", config, stdin=TWO)
    assert "warning: extenders were not asked: http://127.0.0.1:9/scheduler" in ran.out.splitlines()


def test_nodes_beside_the_nominated_one_are_said_to_be_left_aside_for_it() -> None:
    nominated = pod("web") + "status: {nominatedNodeName: n2}\n"
    ran = podium("explain", "web", "--from", "-", stdin=documents(node("n1"), node("n2"), nominated))
    assert "not looked at: n2 is set aside for the pod and takes it" in ran.out
    assert "enough nodes" not in ran.out


@pytest.mark.parametrize("width", [40, 60, 80])
def test_on_a_terminal_the_verdict_wraps_between_words(width: int) -> None:
    nodes = [built_node(f"n{number}", taints=[{"key": "k", "effect": "NoSchedule"}]) for number in range(3)]
    text = text_of(explain(nodes, built_pod(requests={"cpu": "9"})), width)
    verdict = text.partition("\n\n")[0]
    lines = [line.replace("\x1b[1;31m", "").replace("\x1b[0m", "").rstrip() for line in verdict.splitlines()]
    assert len(lines) > 1
    assert max(map(len, lines)) <= width
    assert " ".join(lines).startswith("default/p1 fits nowhere: 0/3 nodes are available: 3 node(s) had untolerated")


def test_what_looks_like_the_name_of_an_emoji_is_printed_as_it_is() -> None:
    ran = podium("explain", "web", "--from", "-", stdin=documents(node("n:smile:1"), pod("web")))
    assert "n:smile:1" in ran.out


# All that wait


def test_all_pods_that_wait_are_judged_and_those_with_a_node_are_not() -> None:
    ran = podium("explain", "-A", "--from", SAMPLE)
    data = json.loads(podium("explain", "-A", "--from", SAMPLE, "-o", "json").out)
    assert (ran.code, ran.err) == (1, "")
    assert [each["pod"] for each in data] == ["analytics/training", "shop/checkout", "shop/web-4"]
    assert [each["selected"] for each in data] == [None, None, "worker-b2"]
    for each in data:
        alone = json.loads(podium("explain", each["pod"], "--from", SAMPLE, "-o", "json").out)
        assert {name: alone[name] for name in ("selected", "message", "preemption")} == {
            name: each[name] for name in ("selected", "message", "preemption")
        }
    assert [line.split()[0] for line in ran.out.splitlines()[2:] if line[:1].strip()] == [each["pod"] for each in data]


def test_all_that_wait_in_one_namespace() -> None:
    data = json.loads(podium("explain", "-A", "-n", "analytics", "--from", SAMPLE, "-o", "json").out)
    assert [each["pod"] for each in data] == ["analytics/training"]


def test_where_none_waits_that_is_said_and_the_answer_is_yes() -> None:
    ran = podium("explain", "-A", "--from", "-", stdin=documents(node("n1")))
    assert (ran.code, ran.out) == (0, "no pod waits for a node\n")


def test_of_pods_that_fit_only_one_by_one_each_is_judged_as_if_it_was_next() -> None:
    two = [pod(name, spec=requesting("3")) for name in ("a", "b")]
    data = json.loads(podium("explain", "-A", "--from", "-", "-o", "json", stdin=documents(node("n1"), *two)).out)
    assert [each["selected"] for each in data] == ["n1", "n1"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-A", "web"], "-A is for all pods that wait: give no pod and no -f"),
        (["web", "-w", "--from", SAMPLE], "-w watches the live cluster: leave out --from and -f"),
        (["web", "--scheduler", "https://x", "--from", SAMPLE], "--from is a dump and --scheduler names a running"),
        (["web", "--scheduler", "https://x", "--config", "c"], "--scheduler reads the configuration of a running"),
    ],
)
def test_options_that_do_not_go_together_are_one_sentence(arguments: list[str], sentence: str) -> None:
    ran = podium("explain", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(sentence)
    assert len(ran.err.splitlines()) == 1


def test_without_a_scheduler_that_shows_its_queue_one_sentence_says_how_to_reach_one(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n"
    )
    with mock.patch.dict("os.environ", {"KUBECONFIG": str(kubeconfig)}):
        ran = podium("queue")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("no scheduler shows its queue: 127.0.0.1:9 refuses connections")
    assert "--scheduler https://127.0.0.1:10259" in ran.err

"""What agents answer: in both ways of sending nodes, in both spellings, and to what makes no sense."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.cluster import NodeInfo, Nodes
from podium.framework import Cycle, DependsOn, NodePart, Plugin, Scores, Status, Verdict
from podium.plugins import load_registry
from tests.podium.extender.questions import Obj, World, args, as_object, decoded, node
from tools.kit.builders import make_pod

QUIET = node("quiet", {"mean-free-cpu": "2500", "std-free-cpu": "400"})
RISKY = node("risky", {"mean-free-cpu": "1000", "std-free-cpu": "200", "congestion-factor": "75"})
BLANK = node("blank")
NODES = [QUIET, RISKY, BLANK]
NAMES = ["quiet", "risky", "blank"]
POD = make_pod(requests={"cpu": "500m"})
OVERLOAD = "node(s) had a risk of cpu overload above 30 percent"
ways = pytest.mark.parametrize(
    ("watched", "given"),
    [(NODES, {"names": NAMES}), (None, {"nodes": NODES}), ([], {"nodes": NODES})],
    ids=["names", "nodes, no watch", "nodes besides a watch"],
)


def kept(answer: Any) -> list[str]:
    if answer["NodeNames"] is not None:
        return list(answer["NodeNames"])
    return [each["metadata"]["name"] for each in answer["Nodes"]["items"]]


@ways
def test_refused_nodes_come_back_with_the_reason_and_the_others_as_they_came(watched: Any, given: Any) -> None:
    answer = World("safe", nodes=watched).ask("/safe/filter", args(POD, **given))
    assert kept(answer) == ["quiet", "blank"]
    assert answer["FailedAndUnresolvableNodes"] == {"risky": OVERLOAD}
    assert (answer["FailedNodes"], answer["Error"]) == ({}, "")
    if answer["Nodes"] is not None:
        assert answer["Nodes"] == {"metadata": {}, "items": [QUIET, BLANK]}


@ways
def test_nodes_that_all_pass_come_back_unchanged(watched: Any, given: Any) -> None:
    world = World("safe", nodes=watched)
    given = {key: [value[0], value[2]] for key, value in given.items()}
    answer = world.ask("/safe/filter", args(POD, **given))
    assert (answer["NodeNames"], answer["Nodes"] and answer["Nodes"]["items"]) == (
        given.get("names"),
        given.get("nodes"),
    )
    assert answer["FailedNodes"] == answer["FailedAndUnresolvableNodes"] == {}


@ways
def test_points_go_from_0_to_10_in_the_order_of_the_request(watched: Any, given: Any) -> None:
    world = World("safe", "congestion", nodes=watched)
    assert world.ask("/safe/prioritize", args(POD, **given)) == [
        {"Host": "quiet", "Score": 9},
        {"Host": "risky", "Score": 0},
        {"Host": "blank", "Score": 0},
    ]
    assert world.points("/congestion/prioritize", POD, **given) == {"quiet": 10, "risky": 3, "blank": 10}


def test_agents_joined_by_a_plus_must_all_agree_and_add_their_points() -> None:
    world = World("safe", "congestion", nodes=NODES)
    assert world.points("/safe+congestion/prioritize", POD, names=NAMES) == {"quiet": 19, "risky": 3, "blank": 10}
    assert world.points("/congestion+safe/prioritize", POD, names=NAMES) == {"quiet": 19, "risky": 3, "blank": 10}
    assert kept(world.ask("/safe+congestion/filter", args(POD, names=NAMES))) == ["quiet", "blank"]
    assert world.routes.find("/safe+pigeon/filter") is None
    assert world.routes.find("/safe+safe/filter") is None


def test_classic_paths_lead_to_single_functions() -> None:
    world = World("safe", nodes=NODES)
    assert kept(world.ask("/scheduler/predicates/safe-overload", args(POD, names=NAMES))) == ["quiet", "blank"]
    assert world.points("/scheduler/priorities/safe-overload", POD, names=NAMES)["quiet"] == 9
    assert world.points("/scheduler/priorities/safe-balance", POD, names=NAMES)["quiet"] == 6
    assert world.routes.find("/scheduler/priorities/congestion") is None


def test_one_agent_alone_needs_no_name_in_the_path() -> None:
    assert World("congestion", nodes=NODES).points("/prioritize", POD, names=NAMES)["risky"] == 3
    assert World("congestion", nodes=NODES).routes.find("/filter") is None
    assert World("congestion", "safe", nodes=NODES).routes.find("/prioritize") is None


@pytest.mark.parametrize("spelling", [str.lower, str.upper, lambda key: key[0].lower() + key[1:]])
def test_keys_are_read_in_any_case(spelling: Any) -> None:
    world = World("safe", nodes=NODES)
    question = {spelling("Pod"): json.loads(args(POD))["Pod"], spelling("NodeNames"): NAMES}
    assert kept(world.ask("/safe/filter", json.dumps(question).encode())) == ["quiet", "blank"]
    question = {spelling("Nodes"): {spelling("items"): NODES}, spelling("Pod"): question[spelling("Pod")]}
    answer = World("safe", nodes=None).ask("/safe/filter", json.dumps(question, indent=1).encode())
    assert kept(answer) == ["quiet", "blank"]


def test_a_pod_that_spells_like_a_request_is_read_for_what_it_is() -> None:
    world = World("safe", nodes=NODES)
    tricky = {"metadata": {"name": "p", "annotations": {"a": ',"Nodes":null,"NodeNames":["x"]}'}}, "NodeNames": []}
    nested = {**tricky, "more": {"Pod": {}, "Nodes": None, "NodeNames": ["risky"]}}
    for pod in (tricky, nested):
        assert kept(world.ask("/safe/filter", args(pod, names=NAMES))) == ["quiet", "risky", "blank"]


# Knowing the cluster


def test_a_changed_node_is_judged_anew() -> None:
    world = World("safe", nodes=NODES)
    pods = [make_pod(f"p{number}", requests={"cpu": "500m"}) for number in range(4)]
    for pod in pods[:3]:
        assert kept(world.ask("/safe/filter", args(pod, names=NAMES))) == ["quiet", "blank"]
    world.cluster.set_node(
        as_object({**QUIET, "metadata": {**QUIET["metadata"], "annotations": {"mean-free-cpu": "0"}}})
    )
    world.cluster.set_node(as_object({**RISKY, "metadata": {**RISKY["metadata"], "annotations": {}}}))
    assert kept(world.ask("/safe/filter", args(pods[3], names=NAMES))) == ["risky", "blank"]
    assert world.points("/safe/prioritize", pods[3], names=NAMES) == {"quiet": 0, "risky": 0, "blank": 0}


def test_a_node_that_came_or_went_is_known_or_not() -> None:
    world = World("congestion", "safe", nodes=NODES)
    assert len(world.points("/congestion/prioritize", POD, names=NAMES)) == 3
    world.cluster.remove_node("blank")
    assert list(world.points("/congestion/prioritize", POD, names=NAMES)) == ["quiet", "risky"]
    answer = world.ask("/safe/filter", args(POD, names=NAMES))
    assert kept(answer) == ["quiet"]
    assert answer["FailedNodes"] == {"blank": "the extender does not know this node (yet)"}
    world.cluster.set_node(as_object(node("blank", {"congestion-factor": "100"})))
    assert world.points("/congestion/prioritize", POD, names=NAMES)["blank"] == 0


def test_given_nodes_leave_a_watched_cluster_as_it_was() -> None:
    world = World("congestion", nodes=NODES)
    before = list(world.cluster.nodes)
    given = [node("quiet", {"congestion-factor": "50"}), node("stranger", {"congestion-factor": "20"})]
    assert world.points("/congestion/prioritize", POD, nodes=given) == {"quiet": 5, "stranger": 8}
    assert [each for each in world.cluster.nodes if each is not None] == before
    assert world.points("/congestion/prioritize", POD, names=NAMES)["quiet"] == 10


def test_given_nodes_are_read_again_when_they_changed() -> None:
    world = World("congestion", nodes=None)
    for factor, points in (("0", 10), ("50", 5), ("50", 5), ("100", 0)):
        given = [node("n", {"congestion-factor": factor}), BLANK]
        assert world.points("/congestion/prioritize", POD, nodes=given) == {"n": points, "blank": 10}


def test_without_a_watch_the_nodes_of_a_question_are_the_whole_cluster_to_who_looks_at_that() -> None:
    world = World("pigeon", nodes=None)
    world.points("/pigeon/prioritize", POD, nodes=[node("a"), node("b")])
    world.points("/pigeon/prioritize", POD, nodes=[node("b"), node("c")])
    assert sorted(each.name for each in world.cluster.nodes if each) == ["b", "c"]


def test_until_the_cluster_is_known_nothing_is_said_about_names() -> None:
    world = World("safe", nodes=NODES)
    world.shared.unready = lambda: "the cluster is not known yet: waiting for nodes"
    assert world.ask("/safe/filter", args(POD, names=NAMES))["Error"] == world.shared.unready()
    reply = world.reply("/safe/prioritize", args(POD, names=NAMES))
    assert (reply.status, decoded(reply)) == (503, {"Error": world.shared.unready()})


# Plugins of every make


class ByTurns(Plugin):
    """Refuses in all the ways there are."""

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        ways = {"now": Status.unschedulable, "never": Status.unresolvable, "later": Status.pending}
        make = ways.get(node.name)
        return make(f"{node.name} is refused", "so it is") if make else None


class Even(Plugin):
    """Scores 0 to 100 in steps of 15, brought into range by the highest."""

    depends_on = DependsOn(node=NodePart.OBJECT)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        return nodes.allocatable("cpu") // 1000 * 15


class Broken(Plugin):
    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict:
        raise ValueError("no idea")

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return 1000


def test_refusals_go_where_preemption_looks_for_them() -> None:
    names = ["now", "never", "later", "fine"]
    world = World("ByTurns", nodes=map(node, names), extra=[ByTurns])
    answer = world.ask("/filter", args(POD, names=names))
    assert answer["NodeNames"] == ["fine"]
    assert answer["FailedNodes"] == {"now": "now is refused, so it is", "later": "later is refused, so it is"}
    assert answer["FailedAndUnresolvableNodes"] == {"never": "never is refused, so it is"}


def test_scores_of_any_plugin_are_scaled_to_ten_points_halves_up() -> None:
    nodes = [node(f"n{cpu}", cpu=str(cpu)) for cpu in range(7)]
    points = World("Even", nodes=nodes, extra=[Even]).points("/prioritize", names=[f"n{cpu}" for cpu in range(7)])
    assert list(points.values()) == [0, 2, 3, 5, 6, 8, 9]


def test_a_plugin_that_fails_is_told_and_nothing_made_up() -> None:
    world = World("Broken", nodes=[BLANK], extra=[Broken])
    answer = world.ask("/filter", args(POD, names=["blank"]))
    assert answer["Error"] == 'running "Broken" filter plugin: ValueError: no idea'
    assert answer["NodeNames"] is None
    reply = world.reply("/prioritize", args(POD, names=["blank"]))
    assert reply.status == 500
    assert "returns an invalid score 1000" in decoded(reply)["Error"]


@pytest.mark.parametrize(
    ("annotations", "points"),
    [
        ({"mean-free-cpu": "nan", "std-free-cpu": "1"}, 0),
        ({"mean-free-cpu": "2500", "std-free-cpu": "nan"}, 0),
        ({"mean-free-cpu": "2500", "std-free-cpu": "-400"}, 10),
        ({"mean-free-cpu": "-2500", "std-free-cpu": "0"}, 0),
        ({"mean-free-cpu": "inf"}, 0),
        ({"mean-free-cpu": "1e999", "std-free-cpu": "x"}, 0),
    ],
)
def test_annotations_that_are_no_measurement_make_no_score(annotations: dict[str, str], points: int) -> None:
    world = World("safe", nodes=[node("n", annotations)])
    assert world.points("/safe/prioritize", POD, names=["n"]) == {"n": points}


def test_arguments_come_from_the_same_file_as_in_podium_run() -> None:
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - {name: Congestion, args: {factorMax: 150}}
"""
    assert World("congestion", nodes=NODES, config=config).points("/prioritize", POD, names=["risky"]) == {"risky": 5}


# What makes no sense

PODTEXT = args(POD).partition(b',"Nodes"')[0]
BAD: list[tuple[bytes, str]] = [
    (b"", "the request is empty"),
    (b"  ", "the request is empty"),
    (args(POD, names=NAMES)[:-9], "the request is not JSON: Input data was truncated"),
    (b"[]", "the request is not what it should be: Expected object"),
    (b"null", "Pod is missing"),
    (b"{}", "Pod is missing"),
    (b'{"Pod":null,"NodeNames":["quiet"]}', "Pod is missing"),
    (b'{"Pod":[],"NodeNames":["quiet"]}', "Pod: "),
    (b'{"Pod":{"spec":{"containers":7}},"NodeNames":["quiet"]}', "Pod: spec.containers"),
    (
        b'{"Pod":{"spec":{"containers":[{"resources":{"requests":{"cpu":"lots"}}}]}},"NodeNames":["quiet"]}',
        'Pod: spec.containers[0].resources.requests.cpu: quantity "lots" cannot be read',
    ),
    (PODTEXT + b"}", "neither Nodes nor NodeNames is given"),
    (PODTEXT + b',"Nodes":null,"NodeNames":[1]}', "NodeNames is not what it should be: Expected str, got int"),
    (PODTEXT + b',"Nodes":null,"NodeNames":"quiet"}', "NodeNames is not what it should be"),
    (PODTEXT + b',"Nodes":null,"NodeNames":["quiet","quiet"]}', 'NodeNames has "quiet" twice'),
    (PODTEXT + b',"Nodes":null,"NodeNames":["x","y"]}', "none of the 2 nodes is known (x, y)"),
    (PODTEXT + b',"Nodes":null,"NodeNames":["quiet"]]}', "the request is not JSON"),
    (PODTEXT + b',"Nodes":{"items":5}}', "Nodes.items is not what it should be"),
    (PODTEXT + b',"Nodes":{"items":[5]}}', "Nodes.items[0]: "),
    (PODTEXT + b',"Nodes":{"items":[{}]}}', "Nodes.items[0] has no metadata.name"),
    (PODTEXT + b',"Nodes":{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}}]}}', 'Nodes has "a" twice'),
    (
        PODTEXT + b',"Nodes":{"items":[{"metadata":{"name":"a"},"status":{"allocatable":{"cpu":"?"}}}]}}',
        'Nodes.items[0]: status.allocatable.cpu: quantity "?" cannot be read',
    ),
    (b"[" * 100_000, "the request is not"),
    (b'{"Pod":' + b"[" * 100_000, "the request is not"),
    (b'{"Pod":{"metadata":{"name":"\xff"}},"NodeNames":["quiet"]}', "Pod: "),
]


@pytest.mark.parametrize(("body", "message"), BAD, ids=[message or "none" for _body, message in BAD])
def test_a_question_that_makes_no_sense_gets_one_sentence(body: bytes, message: str) -> None:
    world = World("safe", nodes=NODES)
    answer = world.ask("/safe/filter", body)
    assert answer["Error"].startswith(message), answer["Error"]
    assert answer["Nodes"] is answer["NodeNames"] is None
    reply = world.reply("/safe/prioritize", body)
    assert reply.status == 400
    assert decoded(reply) == {"Error": answer["Error"]}
    assert kept(world.ask("/safe/filter", args(POD, names=NAMES))) == ["quiet", "blank"]


def test_of_pods_alike_each_is_still_looked_at_where_they_differ() -> None:
    world = World("safe", nodes=NODES)
    for cpu in ("500m", "lots", "500m", "lots"):
        for name in ("p1", "p2"):
            pod = json.loads(args(make_pod(name, requests={"cpu": cpu})))["Pod"]
            error = world.ask("/safe/filter", args(pod, names=NAMES))["Error"]
            assert ('quantity "lots" cannot be read' in error) == (cpu == "lots")
            pod["status"] = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "much"}}]}
            assert "cannot be read" in world.ask("/safe/filter", args(pod, names=NAMES))["Error"]


def test_no_nodes_is_no_nodes() -> None:
    for world, asked in (
        (World("safe", nodes=NODES), args(POD, names=[])),
        (World("safe", nodes=None), args(POD, nodes=[])),
    ):
        answer = world.ask("/safe/filter", asked)
        assert (kept(answer), answer["Error"]) == ([], "")
        assert world.ask("/safe/prioritize", asked) == []


def test_names_without_a_watch_are_refused_with_what_to_do() -> None:
    answer = World("safe", nodes=None).ask("/safe/filter", args(POD, names=NAMES))
    assert "set nodeCacheCapable to false, or start podium extender without --no-watch" in answer["Error"]


# Preempt and bind


def victims(**by_node: list[str]) -> Obj:
    return {name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 1} for name, uids in by_node.items()}


def test_candidates_that_the_filters_refuse_even_without_the_victims_are_dropped() -> None:
    world = World("NodeResourcesFit", nodes=[node(name, cpu="1", pods="9") for name in "abc"])
    small, large = {"cpu": "400m"}, {"cpu": "900m"}
    for name, host, requests in (("a1", "a", small), ("a2", "a", small), ("b1", "b", large), ("c1", "c", large)):
        world.engine.intake.set(make_pod(name, node=host, requests=requests))
    before = world.cluster.resources.requested_of("cpu").tolist()
    pod = json.loads(args(make_pod(requests={"cpu": "800m"})))["Pod"]
    asked = {"Pod": pod, "NodeNameToMetaVictims": victims(a=["default-a1"], b=["default-b1"], gone=["x"])}
    answer = world.ask("/preempt", json.dumps(asked).encode())
    assert answer == {"NodeNameToMetaVictims": victims(b=["default-b1"])}
    whole = {"b": {"Pods": [{"metadata": {"name": "b1", "uid": "default-b1"}}], "NumPDBViolations": 1}}
    asked = {"pod": pod, "nodeNameToVictims": whole}
    assert world.ask("/scheduler/preemption", json.dumps(asked).encode()) == answer
    assert world.cluster.resources.requested_of("cpu").tolist() == before


def test_without_filters_or_without_a_watch_all_candidates_stay() -> None:
    asked = {"Pod": json.loads(args(POD))["Pod"], "NodeNameToMetaVictims": victims(a=["1", "2"], b=["3"])}
    for world in (World("congestion", nodes=NODES), World("safe", nodes=None)):
        answer = world.ask("/preempt", json.dumps(asked).encode())
        assert answer == {"NodeNameToMetaVictims": asked["NodeNameToMetaVictims"]}


@pytest.mark.parametrize(
    ("victims", "message"),
    [
        ({}, "neither NodeNameToVictims nor NodeNameToMetaVictims is given"),
        ({"NodeNameToMetaVictims": 1}, "NodeNameToMetaVictims is not what it should be"),
        ({"NodeNameToMetaVictims": {"a": {"Pods": [{}]}}}, "NodeNameToMetaVictims['a'].Pods[0] has no UID"),
        ({"NodeNameToVictims": {"a": {"Pods": [{}]}}}, "NodeNameToVictims['a'].Pods[0] has no metadata.uid"),
        ({"NodeNameToVictims": {"a": {"NumPDBViolations": "x"}}}, "NodeNameToVictims['a'].NumPDBViolations is not"),
    ],
)
def test_victims_that_make_no_sense_are_refused(victims: Any, message: str) -> None:
    asked = {"Pod": json.loads(args(POD))["Pod"], **victims}
    reply = World("safe", nodes=NODES).reply("/preempt", json.dumps(asked).encode())
    assert reply.status == 400
    assert decoded(reply)["Error"].startswith(message)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            b'{"PodName":"p","PodNamespace":"default","PodUID":"u","Node":"n"}',
            "Extender doesn't support Bind: make 'BindVerb' be empty in your ExtenderConfig",
        ),
        (b'{"PodName":"p"}', "PodName, PodNamespace, PodUID and Node must be given, and nothing else"),
        (
            b'{"PodName":"p","PodNamespace":"default","Node":"n"}',
            "PodName, PodNamespace, PodUID and Node",
        ),
        (
            b'{"PodName":"p","PodNamespace":"d","PodUID":"","Node":"n"}',
            "PodName, PodNamespace, PodUID and Node must be",
        ),
        (
            b'{"PodName":"p","PodNamespace":"d","PodUID":"u","Node":"n","x":""}',
            "PodName, PodNamespace, PodUID and Node",
        ),
        (b'{"PodName":1,"PodNamespace":"default","Node":"n"}', "PodName is not what it should be"),
        (b"", "the request is empty"),
    ],
)
def test_binding_is_refused_where_it_was_not_allowed(asked: bytes, message: str) -> None:
    assert World("safe", nodes=NODES).ask("/scheduler/bind", asked)["Error"].startswith(message)


def test_images_of_nodes_in_full_are_read_where_somebody_looks_at_them() -> None:
    """And nothing else of a node is lost where nobody does."""
    large = {"names": ["app:1"], "sizeBytes": 1000 << 20}
    nodes = [node("with"), node("without")]
    nodes[0]["status"] |= {"images": [large], "declaredFeatures": ["f"], "capacity": {"cpu": "5"}}
    nodes[0]["spec"] = {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}
    pod = make_pod(spec={"containers": [{"name": "c", "image": "app:1"}]})
    world = World("ImageLocality", "safe", nodes=None)
    assert world.points("/ImageLocality/prioritize", pod, nodes=nodes)["with"] > 0
    assert world.cluster.nodes[0] == as_object(nodes[0])
    world = World("safe", nodes=None)
    world.ask("/filter", args(pod, nodes=nodes))
    nodes[0]["status"].pop("images")
    assert world.cluster.nodes[0] == as_object(nodes[0])


def test_a_plugin_that_is_not_trusted_may_look_at_images(monkeypatch: pytest.MonkeyPatch) -> None:
    named = node("n1")
    named["status"] |= {"images": [{"names": ["app:1"], "sizeBytes": 1}]}
    monkeypatch.setattr(load_registry()["SafeOverload"], "trusted", False)
    world = World("safe", nodes=None)
    world.ask("/filter", args(make_pod(), nodes=[named]))
    assert world.cluster.nodes[0] == as_object(named)

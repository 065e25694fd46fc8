"""The worked examples of every agent, asked for the way kube-scheduler asks: by name, and with nodes in full.

The tables are those of the plugins' own tests; here they go through the wire and come back as points.
"""

from __future__ import annotations

from typing import Any

import pytest

from podium.framework.pod_outcomes import GivenOutcomes
from podium.kube import Pod
from podium_plugins.pigeon import PigeonHoling
from tests.podium.extender.questions import Obj, World, args, node
from tests.podium_lab.test_reward import NOW, outcome
from tests.podium_plugins.test_pigeon import MIB, PRIME_USAGES, SEQUENCE, Pair
from tests.podium_plugins.test_safe import TABLE, Row
from tools.kit.builders import make_pod

SAFE = "/scheduler/{}/safe-{}"


def both_ways(*agents: str, nodes: list[Obj], config: str = "") -> list[tuple[World, dict[str, Any]]]:
    """Agents asked by names and with nodes in full; the nodes are known beforehand, or come with the question."""
    names = [each["metadata"]["name"] for each in nodes]
    return [
        (World(*agents, nodes=nodes, config=config), {"names": names}),
        (World(*agents, nodes=None, config=config), {"nodes": nodes}),
    ]


def config_of(plugin: str, arguments: dict[str, Any], *others: str) -> str:
    header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    return f"{header}profiles: [{{pluginConfig: [{{name: {plugin}, args: {arguments}}}{''.join(others)}]}}]\n"


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_safe(row: Row) -> None:
    given = {"mean-free-cpu": row.mean, "std-free-cpu": row.deviation, "forcasted-free-cpu": row.forecast}
    annotations = {key: str(value) for key, value in given.items() if value is not None}
    nodes = [node("n", annotations, cpu=f"{row.capacity}m", memory="8Gi", pods="110")]
    weight = row.args.get("forecastWeight", 20)
    balance = f", {{name: SafeBalance, args: {{forecastWeight: {weight}}}}}"
    config = config_of("SafeOverload", dict(row.args), balance)
    pod = make_pod(requests={"cpu": f"{row.demand}m"})
    for world, how in both_ways("safe", nodes=nodes, config=config):
        answer = world.ask(SAFE.format("predicates", "overload"), args(pod, **how))
        refused = answer["FailedAndUnresolvableNodes"]
        assert (refused == {}) == row.expected.accepted
        assert world.points(SAFE.format("priorities", "overload"), pod, **how) == {"n": row.expected.overload}
        assert world.points(SAFE.format("priorities", "balance"), pod, **how) == {"n": row.expected.balance}


@pytest.mark.parametrize(
    ("factor_max", "expected"),
    [
        (
            100,
            {
                "absent": 10,
                "0": 10,
                "5": 10,
                "14": 9,
                "15": 9,
                "45": 6,
                "55": 5,
                "95": 1,
                "96": 0,
                "100": 0,
                "250": 0,
                "-3": 10,
                "5.5": 10,
                "abc": 10,
                " 7": 10,
                "+7": 9,
                "07": 9,
            },
        ),
        (10, {"3": 7, "5": 5, "7": 3, "10": 0, "12": 0}),
    ],
)
def test_congestion(factor_max: int, expected: dict[str, int]) -> None:
    nodes = [
        node(f"n{number}", {} if text == "absent" else {"congestion-factor": text})
        for number, text in enumerate(expected)
    ]
    config = config_of("Congestion", {"factorMax": factor_max})
    for world, how in both_ways("congestion", nodes=nodes, config=config):
        points = world.points("/scheduler/priorities/congestion", **how)
        assert dict(zip(expected, points.values(), strict=True)) == expected


def pigeon_nodes(capacity: Pair, usages: list[Pair]) -> list[Obj]:
    return [
        node(
            f"n{number}",
            {"requested-cpu": str(cpu), "requested-memory": str(memory * MIB)},
            cpu=f"{capacity[0]}m",
            memory=f"{capacity[1]}Mi",
            pods="110",
        )
        for number, (cpu, memory) in enumerate(usages, start=1)
    ]


def pigeon_pod(demand: Pair) -> Pod:
    return make_pod(requests={"cpu": f"{demand[0]}m", "memory": f"{demand[1]}Mi"})


@pytest.mark.parametrize("path", ["/scheduler/priorities/pigeon-holing", "/pigeon/prioritize"])
def test_pigeon_learns_from_question_to_question(path: str) -> None:
    world = World("pigeon", nodes=None)
    for call in SEQUENCE:
        found = world.points(path, pigeon_pod(call.demand), nodes=pigeon_nodes((4000, 8192), call.usages))
        assert list(found.values()) == call.points
    plugin = world.plugins["PigeonHoling"]
    assert isinstance(plugin, PigeonHoling)
    assert plugin.moments.mean.tolist() == pytest.approx([1350, 2666.667])


@pytest.mark.parametrize(
    ("objective", "demand", "expected"),
    [
        ("LOAD_BALANCE", (500, 512), [7, 8, 1, 10]),
        ("LOAD_BALANCE", (2000, 1024), [1, 5, 0, 10]),
        ("CONSOLIDATE", (500, 512), [7, 4, 10, 1]),
        ("CONSOLIDATE", (2000, 1024), [10, 6, 0, 1]),
    ],
)
def test_pigeon_with_other_objectives(objective: str, demand: Pair, expected: list[int]) -> None:
    nodes = pigeon_nodes((4000, 8192), PRIME_USAGES)
    config = config_of("PigeonHoling", {"objective": objective})
    for world, how in both_ways("pigeon", nodes=nodes, config=config):
        assert list(world.points("/pigeon/prioritize", pigeon_pod(demand), **how).values()) == expected


def test_the_published_run_of_safe_and_pigeon_ends_on_the_second_node() -> None:
    usage = [((900, 200), (1000, 140)), ((1600, 50), (250, 0)), ((1700, 200), (250, 0))]
    nodes = []
    for number, ((mean, deviation), (cpu, memory)) in enumerate(usage):
        annotations = {
            "mean-free-cpu": str(mean),
            "std-free-cpu": str(deviation),
            "requested-cpu": str(cpu),
            "requested-memory": str(memory * MIB),
        }
        nodes.append(node(f"worker-node{number}", annotations, cpu="2", memory="1396Mi", pods="110"))
    pod = pigeon_pod((200, 200))
    for world, how in both_ways("safe", "pigeon", nodes=nodes):
        safe = world.points("/safe/prioritize", pod, **how)
        pigeon = world.points("/pigeon/prioritize", pod, **how)
        assert (list(safe.values()), list(pigeon.values())) == ([9, 10, 9], [1, 10, 10])
        totals = {name: safe[name] + pigeon[name] for name in safe}
        assert max(totals, key=totals.__getitem__) == "worker-node1"


def test_reward_by_what_has_been_learnt_until_the_question() -> None:
    pod_outcomes = GivenOutcomes()
    world = World("reward", nodes=[node("a"), node("b")], pod_outcomes=pod_outcomes)
    pod, names = make_pod(labels={"podtype": "web"}), ["a", "b"]
    found = []
    for number in range(23):
        found.append(world.points("/scheduler/priorities/rl-priority", pod, names=names)["b"])
        pod_outcomes.show(outcome(phase="Failed", node="b"), NOW)
        assert world.points("/reward/prioritize", pod, names=names)["a"] == 10
        assert number < 22 or found[-1] == 0
    assert found[:6] == [10, 9, 8, 7, 6, 5]
    assert found[21:] == [1, 0]

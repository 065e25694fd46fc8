"""kube-scheduler v1.36 and Podium with the same extenders: same decisions, same messages, same requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.podium.run.extender_duel import Duel, Obj, extender, pod
from tests.podium.run.extender_server import ExtenderServer
from tools.testbed import ControlPlane

A, B = {"pool": "a"}, {"pool": "b"}


def node(name: str, pool: str, cpu: str, memory: str, images: dict[str, int] | None = None) -> Obj:
    labels = {"pool": pool, "kubernetes.io/hostname": name, "zone": f"z{int(name[1:]) % 2}"}
    status = {
        "allocatable": {"cpu": cpu, "memory": memory, "pods": "20"},
        "images": [{"names": [f"{image}:latest"], "sizeBytes": size} for image, size in (images or {}).items()],
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


NODES = [
    node("a1", "a", "8", "16Gi", {"app": 800 << 20}),
    node("a2", "a", "4", "16Gi"),
    node("a3", "a", "4", "4Gi"),
    node("b1", "b", "2", "4Gi"),
    node("b2", "b", "2", "4Gi"),
    node("b3", "b", "2", "4Gi"),
]


def config(url: str) -> Obj:
    both = {"filterVerb": "filter", "prioritizeVerb": "prioritize"}
    return {
        "extenders": [
            extender(url, "shaky", **both, preemptVerb="preempt", weight=1, ignorable=True, nodeCacheCapable=True),
            extender(url, "names", **both, weight=2, nodeCacheCapable=True),
            extender(url, "whole", **both, weight=1),
            extender(url, "second", filterVerb="filter", nodeCacheCapable=True),
            extender(url, "meta", preemptVerb="preempt", nodeCacheCapable=True),
            extender(url, "full", preemptVerb="preempt"),
            extender(url, "binder", bindVerb="bind"),
            {
                "urlPrefix": f"{url}/counted",
                "filterVerb": "filter",
                "managedResources": [{"name": "example.com/counted"}],
            },
        ]
    }


@pytest.fixture(scope="module")
def duel(control_plane: ControlPlane) -> Iterator[Duel]:
    control_plane.wipe()
    with ExtenderServer() as theirs, ExtenderServer() as ours:
        duel = Duel(control_plane, (theirs, ours), config, NODES)
        yield duel
        duel.close()
    control_plane.stop_components()
    control_plane.wipe()


def busy(name: str, node_name: str, cpu: str, priority: int = 0, **labels: str) -> Obj:
    """A pod that runs somewhere."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"nodeName": node_name, "containers": [container], "priority": priority}
    status = {"phase": "Running", "startTime": f"2024-01-01T00:00:{len(name):02d}Z"}
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web", **labels}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def scores(**points: int) -> list[Obj]:
    return [{"Host": host, "Score": score} for host, score in points.items()]


SPREAD = [
    {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    for key in ("kubernetes.io/hostname", "zone")
]
DECISIVE = scores(a1=1, a2=9, a3=3)
ON_A = [busy("one", "a1", "5"), busy("two-", "a2", "1", priority=9)]

DECISIONS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("names decide", ["names"], {"names.prioritize": DECISIVE}),
    ("whole nodes decide", ["whole"], {"whole.prioritize": DECISIVE}),
    ("names are filtered", ["names"], {"names.filter": {"keep": ["a2"], "FailedNodes": {"a1": "no"}}}),
    (
        "whole nodes are filtered",
        ["whole"],
        {"whole.filter": {"keep": ["a3", "a1"]}, "whole.prioritize": scores(a3=10)},
    ),
    ("names are asked for, nodes given", ["names"], {"names.filter": {"whole": True}, "names.prioritize": DECISIVE}),
    (
        "one after the other",
        ["names", "second"],
        {"names.filter": {"keep": ["a1", "a3"]}, "second.filter": {"keep": ["a3"]}},
    ),
    ("both score", ["names", "whole"], {"names.prioritize": scores(a1=4), "whole.prioritize": scores(a3=9, a9=5)}),
    ("no scores", ["names"], {"names.prioritize": {"status": 500}, "names.filter": {"keep": ["a1"]}}),
    ("skipped", ["shaky", "names"], {"shaky.filter": {"status": 500}, "names.prioritize": DECISIVE}),
    ("skipped with an error", ["shaky", "names"], {"shaky.filter": {"Error": "x"}, "names.prioritize": DECISIVE}),
    ("scores ignored", ["shaky", "names"], {"shaky.prioritize": {"text": "<p>"}, "names.prioritize": DECISIVE}),
    ("bound by an extender", ["binder", "names"], {"names.prioritize": DECISIVE}),
]

FAILURES: list[tuple[str, list[str], dict[str, Any]]] = [
    ("all refused", ["names"], {"names.filter": {"keep": [], "FailedNodes": {"a1": "no", "a2": "no", "a3": "never"}}}),
    ("some without a word", ["names"], {"names.filter": {"keep": [], "FailedNodes": {"a1": "no"}}}),
    ("none with a word", ["whole"], {"whole.filter": {"keep": []}}),
    ("for good", ["names"], {"names.filter": {"keep": [], "FailedAndUnresolvableNodes": {"a1": "old", "a2": "old"}}}),
    (
        "refused twice",
        ["names"],
        {"names.filter": {"keep": [], "FailedNodes": {"a1": "no"}, "FailedAndUnresolvableNodes": {"a1": "old"}}},
    ),
    ("strangers refused", ["names"], {"names.filter": {"keep": [], "FailedNodes": {"b1": "no", "x1": "no"}}}),
    ("neither names nor nodes", ["names"], {"names.filter": {"text": "{}"}}),
    ("null", ["whole"], {"whole.filter": {"text": "null"}}),
    (
        "one after the other",
        ["names", "second"],
        {
            "names.filter": {"keep": ["a1"], "FailedNodes": {"a2": "no"}},
            "second.filter": {"keep": [], "FailedNodes": {"a1": "busy", "a2": "older"}},
        },
    ),
    ("code", ["names"], {"names.filter": {"status": 500}}),
    ("an error", ["names"], {"names.filter": {"Error": "out of order"}}),
    ("a wrong name", ["names"], {"names.filter": {"NodeNames": ["a1", "x1"]}}),
    ("no JSON", ["names"], {"names.filter": {"text": "<html>"}}),
    ("nothing", ["names"], {"names.filter": {"text": ""}}),
    ("half", ["names"], {"names.filter": {"text": '{"NodeNames": ["a1"'}}),
    ("silence", ["names"], {"names.filter": {"do": "hang"}}),
    ("hung up", ["names"], {"names.filter": {"do": "hang up"}}),
    ("no HTTP", ["names"], {"names.filter": {"do": "no HTTP"}}),
    ("a resource that is not ignored", ["counted"], {}),
]


@pytest.mark.parametrize(("name", "extenders", "answers"), DECISIONS, ids=[each[0] for each in DECISIONS])
def test_the_same_node_with_the_same_totals(
    duel: Duel, name: str, extenders: list[str], answers: dict[str, Any]
) -> None:
    case = pod("p", extenders, answers, nodeSelector=A, topologySpreadConstraints=SPREAD)
    real, ours = duel.fight(case, ON_A)
    assert real.node, real.message
    assert ours == real


@pytest.mark.parametrize(("name", "extenders", "answers"), FAILURES, ids=[each[0] for each in FAILURES])
def test_the_same_failure_in_the_same_words(
    duel: Duel, name: str, extenders: list[str], answers: dict[str, Any]
) -> None:
    real, ours = duel.fight(pod("p", extenders, answers, nodeSelector=A, priority=5), ON_A)
    assert real.message
    assert ours == real


def test_an_extender_that_fails_to_bind(duel: Duel) -> None:
    real, ours = duel.fight(pod("unlucky", ["binder"], {}, nodeSelector=A))
    assert real.message == "no luck"
    ours.totals = real.totals  # the node is a matter of chance
    assert [path for path, _ in ours.requests] == [path for path, _ in real.requests] == ["/binder/bind"]
    assert ours.message == real.message


FULL = [
    busy("v1", "b1", "1", priority=1),
    busy("w1-", "b1", "1", priority=2),
    busy("v2", "b2", "2", priority=3),
    busy("v3", "b3", "2", priority=1, guarded="yes"),
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"guarded": "yes"}}},
    },
]

PREEMPTIONS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("by uid", ["meta"], {"meta.preempt": {"keep": ["b2", "b3"]}}),
    ("whole", ["full"], {"full.preempt": {"keep": ["b2"]}}),
    ("all agreed", ["meta", "full"], {}),
    ("none left", ["meta", "full"], {"meta.preempt": {"keep": []}}),
    ("violations counted anew", ["meta"], {}),
    ("code", ["meta"], {"meta.preempt": {"status": 500}}),
    ("no JSON", ["full"], {"full.preempt": {"text": "x"}}),
    ("unknown node", ["meta"], {"meta.preempt": {"NodeNameToMetaVictims": {"x1": {"Pods": [{"UID": "u"}]}}}}),
    ("unknown pod", ["meta"], {"meta.preempt": {"NodeNameToMetaVictims": {"b1": {"Pods": [{"UID": "u"}]}}}}),
    ("nobody", ["meta"], {"meta.preempt": {"NodeNameToMetaVictims": {"b1": {"Pods": []}}}}),
    ("skipped", ["shaky"], {"shaky.preempt": {"status": 404}}),
    (
        "skipped, and another agreed",
        ["shaky", "meta"],
        {"shaky.preempt": {"text": "x"}, "meta.preempt": {"keep": ["b2"]}},
    ),
    ("nobody, ignored", ["shaky"], {"shaky.preempt": {"NodeNameToMetaVictims": {"b1": {"Pods": []}}}}),
]


@pytest.mark.parametrize(("name", "extenders", "answers"), PREEMPTIONS, ids=[each[0] for each in PREEMPTIONS])
def test_the_same_preemption(duel: Duel, name: str, extenders: list[str], answers: dict[str, Any]) -> None:
    case = pod("p", extenders, answers, nodeSelector=B, priority=100, requests={"cpu": "2"})
    real, ours = duel.fight(case, FULL)
    assert real.message
    assert ours == real

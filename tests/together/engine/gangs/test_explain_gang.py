"""How a gang stands is explained from a dump: members, how many fit, what stops the rest, what would help."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.config import SchedulerConfig
from podium.config.feature_gates import NO_GATES, Gates
from podium.engine.explain import Explanation, Outcome, explain
from podium.kube import decode_documents
from podium_plugins.coscheduling import Coscheduling
from tests.podium.framework.runtimes import REGISTRY, setup
from tools.kit.builders import make_node
from tools.kit.pod_group_worlds import GANGS, TOPOLOGY, group_member, group_members, pod_group


def config() -> SchedulerConfig:
    return setup(default=True, sorter=Coscheduling).config


def dump(minimum: int, pods: int, cpus: tuple[int, ...], placed: int = 0) -> list[Any]:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "pg", "namespace": "default"},
        "spec": {"minMember": minimum},
    }
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{i}"},
            "status": {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "110"}},
        }
        for i, cpu in enumerate(cpus)
    ]
    members = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"p{i}",
                "namespace": "default",
                "labels": {"scheduling.x-k8s.io/pod-group": "pg"},
            },
            "spec": {
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
                **({"nodeName": "n0"} if i < placed else {}),
            },
        }
        for i in range(pods)
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [group, *nodes, *members]})
    return decode_documents(text, "dump").objects


def explained(objects: list[Any]) -> Explanation:
    pod = objects[-1]
    return explain(objects, pod, config(), REGISTRY)


def test_a_gang_that_starts() -> None:
    found = explained(dump(3, 3, (4,)))
    assert found.outcome is Outcome.FITS
    assert found.gang is not None
    assert (found.gang.members, found.gang.would_fit, found.gang.starts) == (3, 3, True)
    assert found.to_data()["gang"]["group"] == "PodGroup default/pg"


def test_a_gang_of_which_too_few_fit() -> None:
    found = explained(dump(4, 4, (2, 1)))
    gang = found.gang
    assert gang is not None
    assert (found.outcome, gang.would_fit, gang.starts) == (Outcome.GANG_WAITS, 3, False)
    assert [(each.message, each.pods) for each in gang.obstacles] == [
        ("0/2 nodes are available: 2 Insufficient cpu.", ["default/p3"])
    ]
    assert gang.remedies[0].changes == ["1 more cpu (asks for 1, 0 of 2 free)"]


def test_a_gang_whose_members_have_not_all_come() -> None:
    found = explained(dump(4, 3, (8,), placed=1))
    gang = found.gang
    assert gang is not None
    assert (found.outcome, gang.members, gang.assigned, gang.starts) == (Outcome.FITS_NOWHERE, 3, 1, False)
    assert gang.objection.endswith("current pods number: 3, minMember of group: 4")


def test_a_pod_without_a_gang() -> None:
    objects = [each for each in dump(3, 1, (4,)) if each.name != "pg"]
    found = explained(objects)
    assert found.gang is None
    assert "gang" not in found.to_data()


@pytest.mark.parametrize("kind", ["PodGroupList", "List"])
def test_groups_are_read_from_lists_of_their_kind(kind: str) -> None:
    item = {"metadata": {"name": "pg", "namespace": "ns"}, "spec": {"minMember": 2}}
    if kind == "List":
        item = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", **item}
    text = json.dumps({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": kind, "items": [item]})
    (group,) = decode_documents(text, "dump").objects
    assert (group.key, group.resource) == ("ns/pg", "podgroups.scheduling.x-k8s.io")  # type: ignore[union-attr]
    assert group.data["spec"] == {"minMember": 2}  # type: ignore[union-attr]


# PodGroups of scheduling.k8s.io, with gates on


def groups_dump(pods: int, cpu: int, minimum: int = 3, key: str = "") -> list[Any]:
    group = pod_group(minimum=minimum, key=key)
    return [make_node("n1", cpu=cpu, labels={"zone": "z1"}), group, *group_members(pods)]


def explained_group(objects: list[Any], gates: Gates = GANGS) -> Explanation:
    return explain(objects, objects[-1], setup(default=True, gates=gates).config, REGISTRY)


def test_a_pod_group_that_starts_is_said_to() -> None:
    found = explained_group(groups_dump(3, cpu=4))
    assert found.outcome is Outcome.FITS
    assert found.gang is not None
    assert (found.gang.starts, found.gang.would_fit, found.gang.obstacles) == (True, 3, [])


def test_a_pod_group_with_too_little_room_says_what_stops_it_and_what_would_help() -> None:
    found = explained_group(groups_dump(3, cpu=2))
    assert found.outcome is Outcome.GANG_WAITS
    assert found.gang is not None
    assert (found.gang.group, found.gang.would_fit, found.gang.starts) == ("PodGroup default/g", 2, False)
    (obstacle,) = found.gang.obstacles
    assert obstacle.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert obstacle.pods == ["default/g-2"]
    assert [remedy.node for remedy in found.gang.remedies] == ["n1"]


def test_all_members_are_tried_to_say_how_many_would_fit() -> None:
    big = [group_member(f"a-{number}", cpu=9) for number in range(2)]
    objects = [make_node("n1", cpu=1), pod_group(minimum=3), *big, group_member("z")]
    gang = explained_group(objects).gang
    assert gang is not None
    assert (gang.would_fit, gang.starts, [len(each.pods) for each in gang.obstacles]) == (1, False, [2])


def test_a_pod_group_with_too_few_pods_says_that_none_is_tried() -> None:
    found = explained_group(groups_dump(2, cpu=4))
    assert found.outcome is Outcome.HELD
    assert found.gang is not None
    assert (found.gang.members, found.gang.minimum) == (2, 3)
    assert found.gang.objection == "waiting for minCount pods from a gang to appear in scheduling queue"


def test_a_pod_group_without_a_domain_says_so() -> None:
    found = explained_group(groups_dump(3, cpu=4, key="rack"), TOPOLOGY)
    assert found.gang is not None
    assert (found.gang.starts, found.gang.objection) == (False, "no feasible placements found")


def test_without_gates_a_pod_group_is_nothing_to_explain() -> None:
    assert explained_group(groups_dump(2, cpu=4), NO_GATES).gang is None

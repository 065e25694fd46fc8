"""Instances of VMR2L: machines become nodes, VMs pods, deployment sets anti-affinities."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from podium_lab.simulator import ScenarioError, simulate
from podium_lab.simulator.reading import load_scenario
from podium_lab.simulator.scenario import Vmr2lPods
from podium_lab.simulator.traces.vmr2l import HOST, RACK, arrivals, machine_nodes
from tests.podium_lab.simulator.scenarios import last

SIZES = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32}


def instance(machines: int = 8, vms: int = 40, seed: int = 1) -> dict[str, Any]:
    """An instance such as the authors publish, with VMs on machines that have room for them."""
    draw = random.Random(seed)
    free = {f"pm_{i}": [44.0, 44.0] for i in range(machines)}
    placed = []
    for number in range(vms):
        kind = draw.choice(list(SIZES))
        cores = SIZES[kind]
        parts = [0, 1] if cores >= 32 else [draw.randrange(2)]
        room = [name for name, numa in free.items() if all(numa[part] >= cores / len(parts) for part in parts)]
        if not room:
            continue
        host = draw.choice(room)
        for part in parts:
            free[host][part] -= cores / len(parts)
        numa = [{"node": part, "cpu": cores // len(parts), "mem_mb": 4096 * cores // len(parts)} for part in parts]
        vm = {"instance_id": f"vm_{number}", "instance_type": f"ecs.c1.{kind}", "host_id": host, "numa": numa}
        placed.append({**vm, "allow_migration": True})
    hosts = [
        {
            "node_id": name,
            "status": "ACTIVE",
            "node_cpu": 88,
            "node_mem_mb": 368776,
            "numa": [{"node": part, "total_cpu": 44, "free_cpu": left} for part, left in enumerate(numa)],
            "rack_id": f"rack_{number // 2}",
        }
        for number, (name, numa) in enumerate(free.items())
    ]
    apart = {"granularity": "host", "data": [vm["instance_id"] for vm in placed[:6]]}
    racks = {"granularity": "rack", "data": [vm["instance_id"] for vm in placed[6:9]]}
    cluster = {"cluster_name": "cluster_0", "host_info": hosts, "vm_instance": placed, "vm_type_info": []}
    return {
        "cluster_list": [{**cluster, "other_requirement": {"deployment_set": [apart, racks]}}],
        "vm_type_list": [],
        "general_requirement": {"maximum_migration": 10},
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(instance()))
    return path


def scenario(file: Path, arrive: str, sets: str = "true") -> str:
    source = f"{{file: {file}, arrive: {arrive}, sets: {sets}}}"
    return f"nodes: {{vmr2l: {file}}}\nworkload: {{vmr2l: {source}}}\nduration: 10m\n"


def test_machines_have_their_cores_memory_and_racks(file: Path) -> None:
    (first, *others) = machine_nodes(file)
    assert (first.name, first.allocatable["cpu"], first.allocatable["memory"]) == ("pm-0", "88000m", "368776Mi")
    assert first.labels == {RACK: "rack_0"}
    assert len(others) == 7


def test_vms_stand_where_the_file_has_them(file: Path) -> None:
    given = {f"vm-{vm['instance_id'][3:]}": vm for vm in instance()["cluster_list"][0]["vm_instance"]}
    found = list(arrivals(Vmr2lPods(file=str(file), arrive="placed"), file, 1))
    assert {each.name: each.node_name for each in found} == {
        name: vm["host_id"].replace("_", "-") for name, vm in given.items()
    }
    assert all(each.template.cpu == 1000 * sum(part["cpu"] for part in given[each.name]["numa"]) for each in found)
    results = simulate(load_scenario(scenario(file, "placed"), str(file)))
    assert last(results.runs[0])["running"] == len(given)


def test_as_a_benchmark_vms_arrive_in_an_order_of_the_seed(file: Path) -> None:
    orders = [[each.name for each in arrivals(Vmr2lPods(file=str(file)), file, seed)] for seed in (1, 2, 1)]
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    results = simulate(load_scenario(scenario(file, "shuffled"), str(file)), seeds="1-2")
    assert [last(run)["arrived"] for run in results.runs] == [len(orders[0])] * 2
    assert all(last(run)["placed"] > 30 for run in results.runs)


def test_vms_of_a_deployment_set_stay_apart(file: Path) -> None:
    apart = {each.name: each.template for each in arrivals(Vmr2lPods(file=str(file)), file, 1)}
    affinity = apart["vm-0"].spec.affinity
    assert affinity is not None
    assert affinity.pod_anti_affinity is not None
    terms = affinity.pod_anti_affinity.required
    assert [term.topology_key for term in terms] == [HOST]
    assert "podium.dev/vmr2l-set-0" in apart["vm-0"].labels
    free = {each.name: each.template for each in arrivals(Vmr2lPods(file=str(file), sets=False), file, 1)}
    assert not free["vm-0"].labels


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda whole: whole.pop("cluster_list"), "is no instance of VMR2L"),
        (lambda whole: whole["cluster_list"][0].update(host_info=[]), "has no machines"),
        (
            lambda whole: whole["cluster_list"][0]["vm_instance"][0].update(host_id="pm_99"),
            'is on "pm_99", which is no',
        ),
        (lambda whole: whole["cluster_list"][0]["vm_instance"][0].update(instance_id="vm_1"), "two VMs have one name"),
        (
            lambda whole: whole["cluster_list"][0]["other_requirement"]["deployment_set"][0].update(granularity="row"),
            'granularity "row": expected host or rack',
        ),
    ],
)
def test_wrong_instances_are_one_sentence(file: Path, change: Any, expected: str) -> None:
    whole = instance()
    change(whole)
    file.write_text(json.dumps(whole))
    with pytest.raises(ScenarioError, match=expected):
        simulate(load_scenario(scenario(file, "placed"), str(file)))


def test_a_machine_that_is_not_active_takes_no_vms(file: Path) -> None:
    whole = instance()
    whole["cluster_list"][0]["host_info"][0]["status"] = "DISABLED"
    file.write_text(json.dumps(whole))
    assert machine_nodes(file)[0].taints[0].effect == "NoSchedule"

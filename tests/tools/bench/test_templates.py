from __future__ import annotations

from tools.bench.templates import Rotating, claim, csi_node, in_zones, node_template, pod_template, volume


def test_blanks_are_filled_in() -> None:
    template = pod_template(
        "p-<index>", labels={"of": "<count>"}, port=lambda index, _: 80 + index, ports=[{"hostPort": "<port>"}]
    )
    pod = template.make(3, 7, "ns")
    assert (pod.key, pod.uid, pod.labels) == ("ns/p-3", "uid-ns-p-3", {"of": "7"})
    assert pod.spec.containers[0].ports[0].host_port == 83


def test_pods_share_nothing() -> None:
    template = pod_template("p-<index>", requests={"cpu": "1"})
    first, second = template.make(0), template.make(1)
    assert first.spec == second.spec
    assert first.spec is not second.spec
    assert first.spec.containers[0].image is not second.spec.containers[0].image


def test_quantities_stay_as_written() -> None:
    node = node_template(cpu="4").make()
    assert node.status.allocatable["cpu"] == "4"


def test_a_node_carries_its_host_name() -> None:
    node = in_zones("a", "b").make(5)
    assert node.labels == {"kubernetes.io/hostname": "scheduler-perf-5", "topology.kubernetes.io/zone": "b"}


def test_volume_and_claim_are_bound_to_each_other() -> None:
    bound, wanted = volume({"csi": {"driver": "d", "volumeHandle": "h"}}).make(4, 9, "ns"), claim().make(4, 9, "ns")
    assert wanted.spec.volume_name == bound.name
    assert bound.spec.claim_ref is not None
    assert f"{bound.spec.claim_ref.namespace}/{bound.spec.claim_ref.name}" == wanted.key
    assert bound.spec.claim_ref.uid == wanted.uid


def test_csi_nodes_say_how_many_volumes_they_take() -> None:
    driver = csi_node(39).make(2).spec.drivers[0]
    assert driver.allocatable is not None
    assert (driver.name, driver.allocatable.count) == ("ebs.csi.aws.com", 39)


def test_templates_take_turns() -> None:
    rotating = Rotating(pod_template("a-<index>"), pod_template("b-<index>"))
    assert [rotating.make(index).name for index in range(3)] == ["a-0", "b-1", "a-2"]

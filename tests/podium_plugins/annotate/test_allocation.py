"""What pods have requested of their nodes, as annotations."""

from typing import Any

from podium.kube import Pod
from podium_plugins.annotate.loop import allocations
from tools.kit.builders import make_node, make_pod

GPU = "nvidia.com/gpu"


def on(name: str, requests: dict[str, str | int], phase: str = "Running", **spec: Any) -> Pod:
    return make_pod(name, node="n", requests=requests, status={"phase": phase}, spec={"nodeName": "n", **spec})


def test_the_published_sample() -> None:
    node = make_node("n", cpu=2, memory="2033401856")
    pods = [on("one", {"cpu": "855m", "memory": "260Mi"}), *(on(f"p{i}", {}) for i in range(11))]
    found = allocations([node], pods, GPU)["n"]
    assert found == {
        "requested-cpu": "855",
        "free-cpu": "1145",
        "requested-memory": "272629760",
        "free-memory": "1760772096",
        "requested-pods": "12",
        "free-pods": "98",
        "requested-gpu": "0",
        "free-gpu": "0",
        "requested-ephemeral-storage": "0",
        "free-ephemeral-storage": "0",
    }


def test_bound_pods_count_before_they_run_and_no_more_when_they_have_ended() -> None:
    pods = [on(phase, {"cpu": "1"}, phase) for phase in ("Pending", "Running", "Unknown", "Succeeded", "Failed", "")]
    pods.append(make_pod("waiting", requests={"cpu": 1}))
    found = allocations([make_node("n", cpu=16)], pods, GPU)["n"]
    assert (found["requested-cpu"], found["requested-pods"]) == ("4000", "4")


def test_init_containers_and_overhead_count() -> None:
    init = [{"name": "i", "image": "app", "resources": {"requests": {"cpu": "1500m"}}}]
    pod = on("p", {"cpu": "500m"}, initContainers=init, overhead={"cpu": "100m", "memory": "1Mi"})
    found = allocations([make_node("n")], [pod], GPU)["n"]
    assert (found["requested-cpu"], found["requested-memory"]) == ("1600", str(2**20))


def test_amounts_are_whole_numbers_and_never_negative() -> None:
    requests: dict[str, str | int] = {"memory": "0.5Gi", "cpu": "0.0005", GPU: 3, "ephemeral-storage": "1Gi"}
    node = make_node("n", cpu="250m", memory="256Mi", allocatable={GPU: 2, "ephemeral-storage": "10Gi"})
    found = allocations([node], [on("p", requests)], GPU)["n"]
    assert (found["requested-memory"], found["free-memory"]) == ("536870912", "0")
    assert (found["requested-cpu"], found["free-cpu"]) == ("1", "249")
    assert (found["requested-gpu"], found["free-gpu"]) == ("3", "0")
    assert found["free-ephemeral-storage"] == str(9 * 2**30)


def test_gpus_go_by_the_name_they_are_given() -> None:
    node = make_node("n", allocatable={"amd.com/gpu": 4})
    found = allocations([node], [on("p", {"amd.com/gpu": 1})], "amd.com/gpu")["n"]
    assert (found["requested-gpu"], found["free-gpu"]) == ("1", "3")

"""The cheapest nodes that unblock pods: the worked numbers, and brute force over all small combinations."""

import itertools
import json
import random
from typing import Any

import pytest

from podium.config.load import default_config
from podium.kube import Pod
from podium.plugins import load_registry
from podium.whatif.applying import add_node
from podium.whatif.catalog import Catalog, CatalogError, read_catalog
from podium.whatif.offers import PurchaseRules
from podium.whatif.placements import SandboxPlacer
from podium.whatif.purchase import GAP, OPTIMAL, purchase
from podium.whatif.sandbox import Sandbox
from tests.podium.whatif.test_worked import sandbox as sample_sandbox
from tools.kit.builders import make_node, make_pod

REGISTRY = load_registry()
CONFIG = default_config(REGISTRY)
PRICES = """
types:
  - {name: m6i.xlarge, price: 0.214, capacity: {cpu: 4, memory: 16Gi, pods: 58}, reserved: eks}
  - {name: m6i.2xlarge, price: 0.428, capacity: {cpu: 8, memory: 32Gi, pods: 58}, reserved: eks}
  - name: g5.12xlarge
    price: 5.672
    allocatable: {cpu: 47810m, memory: 180Gi, pods: 58, nvidia.com/gpu: 4}
    labels: {disk: nvme}
    taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
"""


def catalog(text: str = PRICES) -> Catalog:
    return read_catalog([(text, "prices.yaml")])


def bought(state: Sandbox, prices: str = PRICES, **rules: Any) -> Any:
    return purchase(state, catalog(prices), state.pending(), PurchaseRules(**rules))


def test_the_sample_needs_one_small_node_and_one_with_gpus() -> None:
    found = bought(sample_sandbox())
    assert {name: number for (name, _), number in found.counts.items()} == {"m6i.xlarge": 1, "g5.12xlarge": 1}
    assert (found.price, found.proved, found.gap, found.solved) == (5.886, OPTIMAL, 0.0, True)
    assert {each.offer.name: each.pods for each in found.nodes} == {
        "m6i.xlarge": ["shop/checkout"],
        "g5.12xlarge": ["analytics/training"],
    }


def test_without_the_taint_one_large_node_does() -> None:
    found = bought(sample_sandbox(), "\n".join(line for line in PRICES.splitlines() if "taints" not in line))
    assert (found.price, found.proved, [each.offer.name for each in found.nodes]) == (5.672, OPTIMAL, ["g5.12xlarge"])


def test_a_pod_that_no_type_can_hold_is_said_with_the_reasons() -> None:
    found = bought(sample_sandbox(), only="m6i.*")
    assert [each.pod.name for each in found.hopeless] == ["training"]
    assert not found.solved
    assert (found.price, [each.offer.name for each in found.nodes]) == (0.214, ["m6i.xlarge"])
    assert "Insufficient nvidia.com/gpu" in found.hopeless[0].reasons["m6i.xlarge"] or (
        "node affinity/selector" in found.hopeless[0].reasons["m6i.xlarge"]
    )


def test_no_node_is_bought_where_none_is_needed() -> None:
    state = Sandbox([make_node("n1"), make_pod("p1")], CONFIG, REGISTRY)
    assert (bought(state).nodes, bought(state).price, bought(state).solved) == ([], 0.0, True)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{name: a, price: .nan, capacity: {cpu: 1, memory: 1Gi}}", "price"),
        ("{name: a, price: -1, capacity: {cpu: 1, memory: 1Gi}}", "price -1.0 is no price"),
        ("{name: a, price: 1}", "has no capacity"),
        ("{name: a, price: 1, capacity: {cpu: 0, memory: 1Gi}}", "cpu 0 is no capacity"),
        ("{name: a, price: 1, capacity: {cpu: -2, memory: 1Gi}}", "cpu -2 is no capacity"),
        ("{name: a, price: 1, capacity: {cpu: 1}}", "has no memory"),
        ("{name: a, price: 1, capacity: {cpu: 1, memory: 1Gi}, colour: red}", "colour"),
    ],
)
def test_a_type_that_cannot_be_used_is_named_with_its_line(line: str, problem: str) -> None:
    with pytest.raises(CatalogError, match=r"prices\.yaml:3: ") as raised:
        catalog(f"\ntypes:\n  - {line}\n")
    assert problem in str(raised.value)


def test_a_type_without_a_price_is_named_where_prices_are_needed() -> None:
    state = sample_sandbox()
    with pytest.raises(CatalogError, match=r"prices\.yaml:2: type a has no price"):
        bought(state, "types:\n  - {name: a, capacity: {cpu: 64, memory: 64Gi}}\n")


def test_what_eks_keeps_for_itself_is_taken_away() -> None:
    text = "types:\n" + "".join(
        f"  - {{name: c{cores}, price: 1, capacity: {{cpu: {cores}, memory: 16Gi, pods: 58}}, reserved: eks}}\n"
        for cores in (4, 8, 48)
    )
    found = catalog(text).types
    assert [found[f"c{cores}"].allocatable["cpu"] for cores in (4, 8, 48)] == ["3920m", "7910m", "47810m"]


def test_others_lists_are_read_as_they_are() -> None:
    karpenter = """[{"name": "c-4x-amd64-linux", "offerings": [
      {"Price": 0.1, "Available": true, "Requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-a"]}]},
      {"Price": 0.03, "Available": true, "Requirements": [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]}],
      "architecture": "amd64", "operatingSystems": ["linux"],
      "resources": {"cpu": "4", "memory": "8Gi", "pods": "29"}}]"""
    aws = """{"InstanceTypes": [{"InstanceType": "m6i.xlarge", "VCpuInfo": {"DefaultVCpus": 4},
      "MemoryInfo": {"SizeInMiB": 16384},
      "NetworkInfo": {"MaximumNetworkInterfaces": 4, "Ipv4AddressesPerInterface": 15}}]}"""
    google = """[{"name": "e2-standard-4", "guestCpus": 4, "memoryMb": 16384, "zone": "europe-west1-b"}]"""
    azure = """[{"name": "Standard_D4s_v5", "resourceType": "virtualMachines",
      "capabilities": [{"name": "vCPUs", "value": "4"}, {"name": "MemoryGB", "value": "16"}],
      "locationInfo": [{"location": "westeurope", "zones": ["1", "2"]}]}]"""
    price = "name,zone,price\nm6i.xlarge,,0.214\ne2-standard-4,europe-west1-b,0.15\nStandard_D4s_v5,,0.2\n"
    found = read_catalog(
        [(karpenter, "k.json"), (aws, "a.json"), (google, "g.json"), (azure, "z.json"), (price, "p.csv")]
    )
    kwok = found.types["c-4x-amd64-linux"]
    assert (kwok.price, kwok.spot_price, kwok.zones) == (0.1, 0.03, ("test-zone-a",))
    assert (found.types["m6i.xlarge"].price, found.types["m6i.xlarge"].allocatable["pods"]) == (0.214, 58)
    assert found.types["e2-standard-4"].price_in("europe-west1-b") == 0.15
    assert found.types["Standard_D4s_v5"].zones == ("westeurope-1", "westeurope-2")


# Brute force


def random_case(rng: random.Random) -> tuple[list[Any], str]:
    objects: list[Any] = []
    for number in range(rng.randrange(0, 3)):
        objects.append(make_node(f"n{number}", allocatable={"cpu": "2", "memory": "4Gi", "pods": "10"}))
        objects.append(make_pod(f"there{number}", requests={"cpu": "1500m", "memory": "3Gi"}, node=f"n{number}"))
    for number in range(rng.randrange(1, 13)):
        spec: dict[str, Any] = {"priority": rng.randrange(3)}
        if rng.random() < 0.2:
            spec["nodeSelector"] = {"disk": "ssd"}
        if rng.random() < 0.15:
            spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
        if rng.random() < 0.15:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "apart"}}}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        requests = {"cpu": f"{rng.randrange(1, 9) * 250}m", "memory": f"{rng.randrange(1, 7) * 512}Mi"}
        objects.append(make_pod(f"p{number}", requests=requests, labels={"app": "apart"}, spec=spec))
    kinds = []
    for number in range(rng.randrange(1, 5)):
        cpu, memory = rng.choice(((2, 4), (4, 8), (4, 16), (8, 16), (8, 32)))
        price = round(0.03 * cpu + 0.005 * memory + rng.random() * 0.05, 3)
        extra = ", labels: {disk: ssd}" if rng.random() < 0.6 else ""
        extra += ", taints: [{key: gpu, effect: NoSchedule}]" if rng.random() < 0.2 else ""
        kinds.append(
            f"  - {{name: t{number}, price: {price}, allocatable: {{cpu: {cpu}, memory: {memory}Gi, pods: 20}}{extra}}}"
        )
    return objects, "types:\n" + "\n".join(kinds) + "\n"


def by_brute_force(state: Sandbox, prices: Catalog, pods: list[Pod]) -> float | None:
    """The least price over all multisets of at most four nodes; None where none of them holds the pods."""
    best: float | None = None
    for size in range(5):
        for kinds in itertools.combinations_with_replacement(prices.types.values(), size):
            price = sum(each.price or 0.0 for each in kinds)
            if best is not None and price >= best:
                continue
            with state.trying():
                for number, each in enumerate(kinds):
                    add_node(state, each.node(f"{each.name}-{number}"), [])
                placer = SandboxPlacer(state)
                if all(each.fits for each in placer.place_all(placer.in_queue_order(pods))):
                    best = price
    return best


def compared(seed: int) -> bool:
    """Whether the price is that of brute force; what is proved must always be."""
    rng = random.Random(seed)
    objects, prices = random_case(rng)
    state = Sandbox(objects, CONFIG, REGISTRY)
    pods = state.pending()
    found = purchase(state, catalog(prices), pods, PurchaseRules(max_nodes=4))
    if found.hopeless:
        lost = {each.pod.uid for each in found.hopeless}
        pods = [pod for pod in pods if pod.uid not in lost]
        for pod in found.hopeless:
            state.remove_pod(pod.pod)
    best = by_brute_force(state, catalog(prices), pods)
    if best is None:
        return not found.nodes or not all(each.fits for each in found.placements)
    right = abs(found.price - best) < 1e-6
    assert right or found.proved == GAP, seed
    assert all(each.fits for each in found.placements), seed
    return right


def test_the_price_is_that_of_brute_force() -> None:
    assert all(compared(seed) for seed in range(6))


@pytest.mark.long
def test_of_two_hundred_random_cases_the_price_is_that_of_brute_force() -> None:
    assert sum(compared(seed) for seed in range(200)) >= 198


def test_ten_thousand_types_are_read() -> None:
    entries = [
        {"name": f"t{number}", "price": 1, "allocatable": {"cpu": 4, "memory": "8Gi"}} for number in range(10_000)
    ]
    assert len(read_catalog([(json.dumps({"types": entries}), "types.json")]).types) == 10_000


def test_for_many_pods_few_large_nodes_are_bought_where_small_ones_would_leave_much_unused() -> None:
    pytest.importorskip("scipy")
    entries = [
        {"name": f"c{cpu}", "price": price * cpu, "allocatable": {"cpu": cpu, "memory": f"{8 * cpu}Gi", "pods": 110}}
        for cpu, price in ((4, 1.0), (64, 1.01))
    ]
    pods = [make_pod(f"p{number}", requests={"cpu": ("3", "1500m")[number % 2]}) for number in range(120)]
    bought = purchase(Sandbox([], CONFIG, REGISTRY), read_catalog([(json.dumps({"types": entries}), "c")]), pods)
    assert bought.solved
    assert bought.gap <= 0.05
    assert max(each.offer.name for each in bought.nodes) == "c64"


def test_the_runner_up_has_other_types() -> None:
    catalog = read_catalog([("types: [{name: a, price: 1, allocatable: {cpu: 4, memory: 8Gi}, zones: [za, zb]}]", "c")])
    near: dict[str, Any] = {"preferredDuringSchedulingIgnoredDuringExecution": []}
    pod = make_pod("p", requests={"cpu": "2"}, spec={"affinity": {"nodeAffinity": near}})
    bought = purchase(Sandbox([], CONFIG, REGISTRY), catalog, [pod])
    assert (bought.price, bought.runner_up) == (1.0, None)

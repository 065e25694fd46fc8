"""What is known of a workload: the numbers of the openb lists, and prices."""

from __future__ import annotations

from collections import Counter

import pytest

from podium_lab.simulator.nodes import openb_nodes
from podium_lab.simulator.traces.openb import classes, typical
from podium_plugins.gpu.knowledge import Prices, constrained_demand, expected_fill, knowledge_of, largest_fill, price
from podium_plugins.gpu.request import COUNT, MODEL, GpuRequest
from tests.podium_lab.simulator.scenarios import DATA, needs

OPENB = DATA / "openb"


@needs("openb")
@pytest.mark.parametrize(
    ("name", "number", "rho"),
    [("default", 35, 10_910), ("gpushare40", 36, 10_856), ("gpuspec33", 124, 10_885), ("multigpu40", 42, 10_336)],
)
def test_typical_classes_and_cpu_per_gpu_of_the_lists(name: str, number: int, rho: int) -> None:
    found = typical(OPENB / f"openb_pod_list_{name}.csv")
    assert (len(found), round(knowledge_of(found).rho)) == (number, rho)


@needs("openb")
def test_how_far_shares_fill_a_device_on_the_default_list() -> None:
    shares: Counter[int] = Counter()
    for each in typical(OPENB / "openb_pod_list_default.csv"):
        if each.request.sharing:
            shares[each.request.milli] += each.pods
    at = [190, 400, 500, 810]
    assert largest_fill(shares)[at].tolist() == [160, 390, 480, 810]
    assert expected_fill(shares)[at].round(1).tolist() == [160.0, 348.4, 463.8, 783.0]


@needs("openb")
def test_prices_of_the_empty_cluster() -> None:
    capacity: Counter[str] = Counter()
    for node in openb_nodes(OPENB / "openb_node_list_gpu_node.csv"):
        capacity[node.labels[MODEL]] += 1000 * int(node.status.allocatable[COUNT])
    pods = classes(OPENB / "openb_pod_list_gpuspec33.csv")
    demand = constrained_demand(((each.request, each.pods) for each in pods), capacity)
    total = capacity.total()
    assert {model: round(price(share, capacity[model], total), 2) for model, share in demand.items()} == {
        "A10": 0.01, "G2": 0.10, "G3": 0.42, "P100": 0.80, "T4": 1.29, "V100M16": 0.68, "V100M32": 0.77,
    }  # fmt: skip


def test_demand_that_accepts_several_models_is_split_by_their_gpus() -> None:
    pods = [(GpuRequest(1, 1000, ("A", "B")), 4), (GpuRequest(1, 1000), 4), (GpuRequest(1, 1000, ("gone",)), 2)]
    assert constrained_demand(pods, {"A": 3000, "B": 1000, "C": 4000}) == {"A": 0.3, "B": 0.1, "C": 0.0}


def test_prices_are_kept_until_one_has_moved() -> None:
    prices = Prices()
    prices.renew({"A": 0.5}, {"A": 1000, "B": 1000})
    assert (prices.by_model, prices.generation) == ({"A": 1.0}, 1)
    prices.renew({"A": 0.5}, {"A": 1000, "B": 1090})
    assert (prices.by_model, prices.generation) == ({"A": 1.0}, 1)
    prices.renew({"A": 0.5}, {"A": 1000, "B": 1100})
    assert (prices.by_model, prices.generation) == ({"A": 1.05}, 2)

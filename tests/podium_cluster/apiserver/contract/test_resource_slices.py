"""Resource slices: what both servers refuse, in the same words."""

from typing import Any

from tests.podium_cluster.apiserver.contract.both import contract
from tests.podium_cluster.apiserver.contract.session import Object, Session
from tests.podium_cluster.apiserver.contract.test_device_claims import GROUP, VERSION

SLICES = f"{GROUP}/resourceslices"
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}


def offering(*devices: Object, **fields: Any) -> Object:
    """The spec of a slice; a field that is None is left out."""
    spec = {"driver": "gpu.example.com", "pool": POOL, "nodeName": "n", "devices": list(devices), **fields}
    return {field: value for field, value in spec.items() if value is not None}


def device(name: str = "d", **fields: Any) -> Object:
    return {"name": name, **fields}


def shared(policy: Object, value: str = "10") -> Object:
    return device(allowMultipleAllocations=True, capacity={"m": {"value": value, "requestPolicy": policy}})


MANY = {f"a{i}": {"int": i} for i in range(33)}
REFUSED = [
    offering(driver=""),
    offering(driver="A_"),
    offering(pool={"name": "", "generation": -1, "resourceSliceCount": 0}),
    offering(pool={"name": "A/b", "resourceSliceCount": -1}),
    offering(nodeName=""),
    offering(nodeName=None),
    offering(nodeName="N_"),
    offering(allNodes=True),
    offering(allNodes=False),
    offering(nodeName=None, allNodes=False, perDeviceNodeSelection=False),
    offering(nodeName=None, nodeSelector={"nodeSelectorTerms": []}),
    offering(
        nodeName=None,
        nodeSelector={
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
            ]
        },
    ),
    offering(device(), sharedCounters=[{"name": "s", "counters": {"m": {"value": "1"}}}]),
    offering(*[device(f"d{i}") for i in range(129)]),
    offering(*[device(f"d{i}", taints=[{"key": "a", "effect": "NoSchedule"}]) for i in range(65)]),
    offering(device("D"), device("D")),
    offering(device(attributes=MANY)),
    offering(device(attributes={"a b": {"int": 1}})),
    offering(device(attributes={"/b": {"int": 1}})),
    offering(device(attributes={"a/": {"int": 1}})),
    offering(device(attributes={"A_/b": {"int": 1}})),
    offering(device(attributes={"a": {}})),
    offering(device(attributes={"a": {"int": 1, "string": "x"}})),
    offering(device(attributes={"a": {"string": "x" * 65}})),
    offering(device(attributes={"a": {"version": "1.2"}})),
    offering(device(attributes={"a" * 33: {"int": 1}})),
    offering(device(capacity={"m": {"value": "1Gi", "requestPolicy": {"default": "1"}}})),
    offering(shared({"validValues": ["2Gi", "1Gi", "1Gi"], "default": "3"}, "1Gi")),
    offering(shared({"validValues": ["1"], "validRange": {"min": "1"}}, "1Gi")),
    offering(shared({"validRange": {"min": "20"}})),
    offering(shared({"default": "1", "validRange": {}})),
    offering(shared({"default": "7", "validRange": {"min": "20", "max": "12", "step": "5"}})),
    offering(shared({"default": "1", "validRange": {"min": "2", "max": "1", "step": "10"}})),
    offering(shared({"validValues": ["1"]})),
    offering(device(taints=[{"key": "a b", "value": "x y", "effect": ""}, {"key": "", "effect": "Z"}])),
    offering(
        device(
            consumesCounters=[
                {"counterSet": "", "counters": {}},
                {"counterSet": "A", "counters": {"M": {"value": "1"}}},
            ]
        )
    ),
    offering(device(consumesCounters=[{"counterSet": "a", "counters": {"m": {"value": "1"}}}] * 3)),
    offering(device(consumesCounters=[{"counterSet": "a", "counters": {"m": {"value": "1"}}}] * 2)),
    offering(
        nodeName=None,
        devices=None,
        allNodes=True,
        sharedCounters=[
            {"name": "", "counters": {}},
            {"name": "A", "counters": {f"m{i}": {"value": "1"} for i in range(33)}},
            {"name": "A", "counters": {"M": {"value": "1"}}},
        ],
    ),
    offering(device(nodeName="n")),
    offering(device(), nodeName=None, perDeviceNodeSelection=True),
    offering(device(nodeName="", allNodes=False), nodeName=None, perDeviceNodeSelection=True),
    offering(device(nodeName="n", allNodes=True), nodeName=None, perDeviceNodeSelection=True),
    offering(device(bindingConditions=["a"])),
]


@contract
def test_slices_refused(api: Session) -> None:
    for spec in REFUSED:
        kind = {"apiVersion": VERSION, "kind": "ResourceSlice"}
        answer = api.create(SLICES, {**kind, "metadata": {"name": "s"}, "spec": spec})
        assert answer.code == 422, answer.body


@contract
def test_driver_pool_and_node_of_a_slice_stay_and_its_generation_may_go_back(api: Session) -> None:
    kind = {"apiVersion": VERSION, "kind": "ResourceSlice"}
    made = api.create(SLICES, {**kind, "metadata": {"name": "s"}, "spec": offering(device())}).body
    changes: tuple[tuple[Object, int], ...] = (
        ({"driver": "other.example.com"}, 422),
        ({"pool": {**POOL, "name": "q"}}, 422),
        ({"nodeName": "m"}, 422),
        ({"pool": {**POOL, "generation": 0}}, 200),
    )
    for change, code in changes:
        metadata = {field: value for field, value in made["metadata"].items() if field != "resourceVersion"}
        changed = {**made, "metadata": metadata, "spec": {**made["spec"], **change}}
        assert api.put(f"{SLICES}/s", changed).code == code
    api.delete(f"{SLICES}/s")

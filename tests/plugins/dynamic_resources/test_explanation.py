"""What `podium explain` says of devices: those that a node would give, and why there are none."""

from podium.engine.explain import explain
from tests.builders import make_node
from tests.placement.devices.worlds import DRIVER, device, numbered, request, selectors
from tests.plugins.dynamic_resources.test_scheduling import claim, class_of_devices, pod, slice_of


def test_each_feasible_node_has_the_devices_it_would_give() -> None:
    slices = [slice_of("s1", device("d1"), device("d2")), slice_of("s2", device("d3"), nodeName="n2")]
    objects = [make_node("n1"), make_node("n2"), class_of_devices(), *slices, claim("cl", request(count=2))]
    data = explain(objects, pod()).to_data()
    assert data["selected"] == "n1"
    given = {"claim": "default/cl", "request": "r", "driver": DRIVER, "pool": "s1"}
    assert {node["name"]: node.get("devices") for node in data["nodes"]} == {
        "n1": [{**given, "device": "d1"}, {**given, "device": "d2"}],
        "n2": None,
    }


def test_a_pod_that_fits_nowhere_is_told_what_its_requests_find() -> None:
    wanted = request(selectors=selectors(f'device.attributes["{DRIVER}"].m == 2'), count=2)
    offered = slice_of("s1", numbered("d1", 1), numbered("d2", 2))
    explanation = explain([make_node("n1"), class_of_devices(), offered, claim("cl", wanted)], pod())
    found = "of 2 devices 1 match, on 1 nodes; 1 of them are free"
    assert explanation.notes == [f"claim default/cl, request r: wants 2 of class c; {found}"]

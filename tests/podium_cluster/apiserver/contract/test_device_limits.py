"""Claims, classes and slices at their limits: lists and texts one too long, and forms of addresses and ids."""

import copy
from typing import Any, Final

import pytest

from tests.podium_cluster.apiserver.contract.both import Servers, contract
from tests.podium_cluster.apiserver.contract.session import Object, Session
from tests.podium_cluster.apiserver.contract.test_device_claims import CLAIMS, CLASSES, TEMPLATES
from tests.podium_cluster.apiserver.contract.test_random_device_objects import (
    CLAIM,
    CLASS,
    COUNTING,
    OBJECTS,
    SLICE,
    STATUS,
    TEMPLATE,
)
from tests.podium_cluster.apiserver.contract.test_random_objects import note
from tests.podium_cluster.apiserver.contract.test_resource_slices import SLICES

Place = tuple[str | int, ...]

DEVICES: Final = ("spec", "devices")
EXACTLY: Final = (*DEVICES, "requests", 0, "exactly")
LISTS: Final[tuple[tuple[str, Object, Place, int], ...]] = (
    (CLAIMS, CLAIM, (*DEVICES, "requests"), 32),
    (CLAIMS, CLAIM, (*DEVICES, "requests", 1, "firstAvailable"), 8),
    (CLAIMS, CLAIM, (*EXACTLY, "selectors"), 32),
    (CLAIMS, CLAIM, (*EXACTLY, "tolerations"), 16),  # said in the documentation, not enforced
    (CLAIMS, CLAIM, (*DEVICES, "constraints"), 32),
    (CLAIMS, CLAIM, (*DEVICES, "config"), 32),
    (CLAIMS, CLAIM, (*DEVICES, "config", 0, "requests"), 32),
    (CLASSES, CLASS, ("spec", "selectors"), 32),
    (CLASSES, CLASS, ("spec", "config"), 32),
    (SLICES, COUNTING, ("spec", "sharedCounters"), 8),
    (SLICES, SLICE, DEVICES, 64),
    (SLICES, SLICE, (*DEVICES, 0, "taints"), 16),
    (SLICES, SLICE, (*DEVICES, 0, "consumesCounters"), 2),
    (SLICES, SLICE, (*DEVICES, 0, "bindingConditions"), 4),
    (SLICES, SLICE, (*DEVICES, 0, "bindingFailureConditions"), 4),
)
STATUS_LISTS: Final[tuple[tuple[Place, int], ...]] = (
    (("allocation", "devices", "results"), 32),
    (("allocation", "devices", "config"), 64),
    (("allocation", "devices", "config", 0, "requests"), 32),
    (("reservedFor",), 256),
    (("devices", 0, "conditions"), 8),
)
STATUS_TEXTS: Final[tuple[tuple[Place, int], ...]] = (
    (("devices", 0, "conditions", 0, "reason"), 1 << 10),
    (("devices", 0, "conditions", 0, "message"), 32 << 10),
)
MAPS: Final[tuple[tuple[Object, Place, Object, int], ...]] = (
    (SLICE, (*DEVICES, 0, "attributes"), {"int": 1}, 30),  # two capacities are counted with them
    (SLICE, (*DEVICES, 0, "attributes"), {"int": 1}, 48),
    (SLICE, (*DEVICES, 0, "consumesCounters", 0, "counters"), {"value": "1"}, 32),
    (COUNTING, ("spec", "sharedCounters", 0, "counters"), {"value": "1"}, 32),
)
SHARES: Final = (
    *("8f1c7a2e8b1f4f529c1e0a5e6f7d8c9b", "{8f1c7a2e-8b1f-4f52-9c1e-0a5e6f7d8c9b}", "x" * 45, "x" * 38, "x" * 36),
    *("urn:uuid:8f1c7a2e-8b1f-4f52-9c1e-0a5e6f7d8c9b", "8F1C7a2e-8b1f-4f52-9c1e-0a5e6f7d8c9b", "x" * 32, "x", ""),
)
TEMPLATE_METADATA: Final[tuple[Object, ...]] = (
    *({"finalizers": ["a"]}, {"name": "x"}, {"uid": "x"}, {"generation": 1}, {"generation": 0}),
    *({"creationTimestamp": None}, {"creationTimestamp": "2024-01-01T00:00:00Z"}),
    *({"annotations": {"Bad!": "x"}}, {"labels": {"Bad!": "x", "a": "!"}}, {"deletionGracePeriodSeconds": 0}),
)


def with_value(obj: Object, place: Place, value: Any) -> Object:
    found = copy.deepcopy(obj)
    at(found, place[:-1])[place[-1]] = value
    return found


def at(obj: Any, place: Place) -> Any:
    for step in place:
        obj = obj[step]
    return obj


def with_entries(obj: Object, place: Place, count: int) -> Object:
    """The object with so many entries in a list, each with a name of its own where the first has one."""
    first = at(obj, place)[0]
    return with_value(obj, place, [named(first, number) for number in range(count)])


def named(entry: Any, number: int) -> Any:
    if isinstance(entry, str):
        return f"10.0.0.{number}/24" if "/" in entry else f"x{number}"
    identity = next((field for field in ("name", "uid", "device", "counterSet", "type") if field in entry), None)
    return {**entry, identity: f"{entry[identity].lower()}{number}"} if identity else entry


def tried(api: Session, path: str, obj: Object) -> None:
    note(api, 0, api.create(path, obj, query={"dryRun": "All"}, note=False))


def tried_status(api: Session, status: Object) -> None:
    path = f"{CLAIMS}/random-claim"
    body = {**CLAIM, "status": status, "metadata": api.get(path, note=False).body["metadata"]}
    note(api, 0, api.put(f"{path}/status", body, query={"dryRun": "All"}, note=False))


@contract
def test_lists_have_a_limit(api: Session) -> None:
    for path, obj, place, most in LISTS:
        for count in (most, most + 1):
            tried(api, path, with_entries(obj, place, count))


@contract
def test_maps_have_a_limit(api: Session) -> None:
    for obj, place, value, most in MAPS:
        for count in (most, most + 1):
            tried(api, SLICES, with_value(obj, place, {f"a{number}": value for number in range(count)}))


@contract
def test_devices_without_taints_and_counters_may_be_more(api: Session) -> None:
    for count in (128, 129):
        tried(api, SLICES, with_value(SLICE, DEVICES, [{"name": f"d{number}"} for number in range(count)]))


@contract
def test_metadata_of_a_template_is_labels_and_annotations(api: Session) -> None:
    for metadata in TEMPLATE_METADATA:
        tried(api, TEMPLATES, with_value(TEMPLATE, ("spec", "metadata"), metadata))


@contract
def test_fields_behind_closed_gates_are_dropped(api: Session) -> None:
    for attribute in ({"ints": [1]}, {"int": 1, "strings": ["x"]}, {"bools": [True], "versions": ["x"]}):
        tried(api, SLICES, with_value(SLICE, (*DEVICES, 0, "attributes"), {"a": attribute}))
    mappings: tuple[Object, ...] = ({"cpu": {}}, {"x": {"allocationMultiplier": "0"}})
    for mapping in mappings:
        tried(api, SLICES, with_value(SLICE, (*DEVICES, 0, "nodeAllocatableResourceMappings"), mapping))


@contract
def test_statuses_have_limits(api: Session) -> None:
    assert api.create(CLAIMS, CLAIM, note=False).code == 201
    for place, most in STATUS_LISTS:
        for count in (most, most + 1):
            tried_status(api, with_entries(STATUS, place, count))
    for place, most in STATUS_TEXTS:
        for count in (most, most + 1):
            tried_status(api, with_value(STATUS, place, "x" * count))
    given: tuple[Any, ...] = (None, {}, [], 1, "x", {"a": "x" * 10240})
    for data in given:
        tried_status(api, with_value(STATUS, ("devices", 0, "data"), data))


@contract
def test_ids_of_shares_are_lowercase_uuids(api: Session) -> None:
    assert api.create(CLAIMS, CLAIM, note=False).code == 201
    for share in SHARES:
        shared = with_value(STATUS, ("allocation", "devices", "results", 1, "shareID"), share)
        tried_status(api, with_value(shared, ("devices", 0, "shareID"), share))


@contract
def test_lists_that_are_not_given_are_null(api: Session) -> None:
    empty: Object = {"requests": [], "constraints": [], "config": []}
    for name, devices in (("none", None), ("empty", empty)):
        obj = {**CLAIM, "metadata": {"name": name}, "spec": {"devices": devices}}
        for answer in (api.create(CLAIMS, obj, note=False), api.get(f"{CLAIMS}/{name}", note=False)):
            assert answer.body["spec"] == {"devices": {"requests": None}}
            note(api, 0, answer)
        note(api, 0, api.put(f"{CLAIMS}/{name}", obj, note=False))


def test_a_step_of_zero_is_refused(servers: Servers) -> None:
    """kube-apiserver divides by it, and answers nothing at all."""
    place = (*DEVICES, 0, "capacity", "memory", "requestPolicy", "validRange", "step")
    session = Session(servers.embedded, "default")
    answer = session.create(SLICES, with_value(SLICE, place, "0"), query={"dryRun": "All"})
    session.close()
    assert answer.code == 422
    assert "value is not a multiple of a given step (0)" in answer.message


@pytest.mark.parametrize("at", range(len(OBJECTS)))
def test_the_objects_that_are_changed_are_good(servers: Servers, at: int) -> None:
    path, obj = OBJECTS[at]
    session = Session(servers.embedded, "default")
    assert session.create(path, obj, query={"dryRun": "All"}).code == 201
    session.close()

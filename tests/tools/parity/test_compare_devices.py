"""Before 1.36 the order in which devices are looked at is chance: any choice in it is right, and nothing else is."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tools.parity.case import Case, Decision
from tools.parity.compare import judge
from tools.parity.dice import Obj

CONFIG: Obj = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
DRIVER = "drv.example.com"


def object_of(kind: str, name: str, api: str = "v1", **fields: Any) -> Obj:
    namespace = {} if kind in ("Node", "ResourceSlice", "DeviceClass") else {"namespace": "a"}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **namespace}, **fields}


def slice_of(name: str, pool: str, *devices: str, count: int = 1) -> Obj:
    offered = [{"name": each, "attributes": {"m": {"int": 1}}} for each in devices]
    spec = {"driver": DRIVER, "nodeName": "n", "devices": offered}
    return object_of(
        "ResourceSlice",
        name,
        "resource.k8s.io/v1",
        spec={**spec, "pool": {"name": pool, "generation": 1, "resourceSliceCount": count}},
    )


SLICES = [slice_of("s1", "p", "d1", "d2", count=2), slice_of("s2", "p", "d3", count=2), slice_of("s3", "q", "d4")]


def case_with(*devices: str, minor: str = "1.35", requests: int = 1, slices: list[Obj] = SLICES) -> Case:
    """A pod with a claim of `requests` devices, which kube-scheduler is to have given these, as pool/device."""
    asked = [{"name": f"r{each}", "exactly": {"deviceClassName": "c", "count": 1}} for each in range(requests)]
    capacity = {"pods": "9"}
    pod = object_of(
        "Pod",
        "p",
        spec={
            "schedulerName": "default-scheduler",
            "containers": [],
            "resourceClaims": [{"name": "x", "resourceClaimName": "cl"}],
        },
    )
    objects = [
        object_of("Node", "n", status={"allocatable": capacity, "capacity": capacity}),
        object_of("DeviceClass", "c", "resource.k8s.io/v1", spec={}),
        object_of("ResourceClaim", "cl", "resource.k8s.io/v1", spec={"devices": {"requests": asked}}),
        *deepcopy(slices),
    ]
    given = [f"a/cl r{number} {DRIVER}/{each}" for number, each in enumerate(devices)]
    decision = Decision("bound", node="n", feasible=["n"], devices=given)
    return Case("0-0", "devices", objects, pod, CONFIG, 0, decision, minor)


@pytest.mark.parametrize("given", [("p/d1", "p/d2"), ("p/d3", "p/d1"), ("q/d4", "p/d1"), ("q/d4", "p/d3")])
def test_any_order_of_pools_and_slices_is_right_before_1_36(given: tuple[str, ...]) -> None:
    assert judge(case_with(*given, requests=2))[1] == []


@pytest.mark.parametrize(
    "given",
    [
        ("p/d2", "p/d1"),  # the devices of a slice stand in order
        ("p/d2", "p/d3"),
        ("p/d1", "q/d4"),  # a pool is looked through before the next one
        ("p/d1", "p/d1"),
    ],
)
def test_what_no_order_leads_to_differs(given: tuple[str, ...]) -> None:
    answer, lines = judge(case_with(*given, requests=2))
    assert answer.devices == [f"a/cl r0 {DRIVER}/p/d1", f"a/cl r1 {DRIVER}/p/d2"]
    assert len(lines) == 1


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_from_1_36_on_only_the_order_by_name_is_right(minor: str) -> None:
    assert judge(case_with("p/d1", minor=minor))[1] == []
    assert judge(case_with("p/d3", minor=minor))[1] != []


def test_a_pod_without_claims_is_asked_about_once() -> None:
    case = case_with()
    pod = {**case.pod, "spec": {**case.pod["spec"], "resourceClaims": []}}
    wrong = replace(case.decision, devices=["a/cl r0 other"])
    assert judge(replace(case, pod=pod, decision=case.decision))[1] == []
    assert judge(replace(case, pod=pod, decision=wrong))[1] != []

"""Defines workloads about devices: claims of a template, claims that pods share, extended resources, partitions.

They are those of scheduler_perf's folder `dra` at their largest sizes; some have one node with devices and up to ten
pods, and one without devices beside it. Claims of a template come with their pod, as its controller would make them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.kube import DeviceClass, ResourceClaim, ResourceSlice
from tools.bench.operations import (
    AllocateClaims,
    Count,
    CreateAny,
    CreateNodes,
    CreatePods,
    Operation,
    SteadyPods,
)
from tools.bench.templates import CREATED, ObjectTemplate, node_template, pod_template
from tools.bench.workload import Sizes, case

DRIVER = "test-driver.cdi.k8s.io"
NODE_NAME = "scheduler-perf-dra-<index>"
NODE = node_template(NODE_NAME, labels={"node-with-dra": "true"})
OF_DRIVER = f'device.driver == "{DRIVER}"'
SHAREABLE = f"{OF_DRIVER} &&\ndevice.allowMultipleAllocations == true"
PARTITIONED = (
    f"device.capacity['{DRIVER}'].counters.compareTo(quantity('2')) >= 0 &&\ndevice.attributes['{DRIVER}'].preallocate"
)
EVERY_NODE = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "node-with-dra", "operator": "In", "values": ["true"]}]}]
}
ONE = {"deviceClassName": "test-class", "allocationMode": "ExactCount", "count": 1}


def _meta(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": f"uid-{name}", "creationTimestamp": CREATED, **more}


def _class(name: str, expression: str, **spec: Any) -> ObjectTemplate[DeviceClass]:
    selectors = [{"cel": {"expression": expression}}]
    return ObjectTemplate(DeviceClass, {"metadata": _meta(name), "spec": {"selectors": selectors, **spec}})


def _slice(
    name: str, pool: str, slices: int, devices: Sequence[Mapping[str, Any]], **spec: Any
) -> ObjectTemplate[ResourceSlice]:
    pooled = {"name": pool, "generation": 1, "resourceSliceCount": slices}
    body = {"driver": DRIVER, "pool": pooled, "devices": devices, **spec}
    return ObjectTemplate(ResourceSlice, {"metadata": _meta(name), "spec": body})


def _claim(name: str, requests: Sequence[Mapping[str, Any]], **devices: Any) -> ObjectTemplate[ResourceClaim]:
    metadata = {**_meta(name, namespace="<namespace>"), "uid": f"uid-<namespace>-{name}"}
    return ObjectTemplate(
        ResourceClaim, {"metadata": metadata, "spec": {"devices": {"requests": list(requests), **devices}}}
    )


def _owned_claim(*requests: Mapping[str, Any], **devices: Any) -> ObjectTemplate[ResourceClaim]:
    """The claim that the controller makes of a template for POD_WITH_TEMPLATE."""
    name = "test-dra-<index>"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-<namespace>-{name}", "controller": True}
    metadata = _meta(f"{name}-resource", namespace="<namespace>", ownerReferences=[owner])
    metadata["uid"] = f"uid-<namespace>-{name}-resource"
    spec = {"devices": {"requests": list(requests), **devices}}
    return ObjectTemplate(ResourceClaim, {"metadata": metadata, "spec": spec})


def _instances(count: int, **each: Any) -> list[dict[str, Any]]:
    """The devices of the test driver on one node."""
    return [
        {
            **each,
            "name": f"instance-{number}",
            "attributes": {
                "model": {"string": "A100"},
                "family": {"string": "GPU"},
                "driverVersion": {"version": "1.2.3"},
                "dra.example.com/numa": {"int": number},
            },
            "capacity": {"memory": {"value": "1Gi"}},
        }
        for number in range(count)
    ]


def _driver(devices: int, **each: Any) -> CreateAny:
    return CreateAny(_slice(NODE_NAME, NODE_NAME, 1, _instances(devices, **each), nodeName=NODE_NAME), count="nodes")


TEST_CLASS = _class("test-class", OF_DRIVER)
REQUEST = {"name": "req-0", "exactly": ONE}
CLAIM = _claim("test-claim-<index>", [REQUEST])
OWNED = _owned_claim(REQUEST)
POD_WITH_TEMPLATE = pod_template(
    "test-dra-<index>",
    container={"resources": {"claims": [{"name": "resource"}]}},
    resourceClaims=[{"name": "resource", "resourceClaimTemplateName": "test-claim-template"}],
    status={"resourceClaimStatuses": [{"name": "resource", "resourceClaimName": "test-dra-<index>-resource"}]},
)
POD_THAT_SHARES = pod_template(
    "test-dra-<index>",
    container={"resources": {"claims": [{"name": "resource"}]}},
    resourceClaims=[{"name": "resource", "resourceClaimName": "test-claim-<claim>"}],
    claim=lambda index, _: index // 5,
)


def _resources_of(name: str, classes: Count) -> list[Operation]:
    """Pods that ask for devices by the names of extended resources, class after class."""
    wanted = {name: 1}

    def number(index: int, count: int) -> int:
        return index % (classes if isinstance(classes, int) else count)

    pod = pod_template("test-dra-<index>", requests=wanted, limits=wanted, number=number)
    named = {} if name.startswith("device") else {"extendedResourceName": "example.com/gpu-<index>"}
    return [
        CreateNodes("nodes", NODE),
        _driver(10),
        CreateAny(_class("test-class-<index>", OF_DRIVER, **named), count=classes),
        CreatePods("init", pod, namespace="init"),
        CreatePods("measured", pod, namespace="test", measured=True),
    ]


def _steady(*, sizes: Mapping[str, Sizes]) -> Any:
    return case(
        "SteadyStateClusterResourceClaimTemplate",
        [
            CreateNodes("nodes", NODE),
            _driver(10),
            CreateAny(TEST_CLASS),
            CreateAny(CLAIM, "init", "init", less="together"),
            AllocateClaims("init"),
            SteadyPods("together", "measured", POD_WITH_TEMPLATE, (OWNED,), "test"),
        ],
        sizes,
    )


def _partition(name: str, index: int, counters: Sequence[int], *, preallocate: bool = False) -> dict[str, Any]:
    consumed = {f"counter{number}": {"value": "1"} for number in counters}
    return {
        "name": name,
        "attributes": {"preallocate": {"bool": preallocate}, "dra.example.com/slice": {"int": "<index>"}},
        "capacity": {"counters": {"value": str(index)}},
        "consumesCounters": [{"counterSet": "counter-set", "counters": consumed}],
    }


PARTITIONS = [
    _partition("device-2-counters-1", 2, (1, 2), preallocate=True),
    _partition("device-2-counters-2", 2, (3, 4)),
    *(_partition(f"device-1-counter-{number}", 1, (number,)) for number in range(1, 5)),
]
COUNTER_SET = {"name": "counter-set", "counters": {f"counter{number}": {"value": "1"} for number in range(1, 5)}}
POOL = "resourceslice-<index>"
TWO_OF_A_SLICE = _owned_claim(
    {"name": "req-0", "exactly": {**ONE, "count": 2}},
    constraints=[{"requests": ["req-0"], "matchAttribute": "dra.example.com/slice"}],
)
BACKTRACKING = [
    {
        "name": f"device-{number}",
        "consumesCounters": [
            {"counterSet": "counter-set-for-cpu", "counters": {f"cpu{number}": {"value": "1"}}},
            {"counterSet": "counter-set-for-mem", "counters": {"mem": {"value": "20Gi" if number == 1 else "10Gi"}}},
        ],
    }
    for number in range(1, 9)
]
"""Seven of the eight fit into 70Gi, but none of these sevens has the first device, which is tried first."""
CPUS_AND_MEMORY = [
    {"name": "counter-set-for-cpu", "counters": {f"cpu{number}": {"value": "1"} for number in range(1, 9)}},
    {"name": "counter-set-for-mem", "counters": {"mem": {"value": "70Gi"}}},
]
FIRST_AVAILABLE = {
    "name": "req-0",
    "firstAvailable": [
        {**ONE, "name": "sub-0", "deviceClassName": "no-devices-class"},
        {**ONE, "name": "sub-1"},
    ],
}
TAINT = {"key": "example.com/taint", "value": "tainted", "effect": "NoSchedule"}
TOLERATING = {"name": "req-0", "exactly": {**ONE, "tolerations": [{"key": "example.com/taint", "operator": "Exists"}]}}
GIGABYTES = {**ONE, "capacity": {"requests": {"memory": "40Gi"}}}
SHARED_MEMORY = {
    "name": "shareable-device",
    "allowMultipleAllocations": True,
    "capacity": {"memory": {"value": "80Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi"}}}},
}
SCORING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: LeastAllocated
        resources:
        - {name: cpu, weight: 1}
        - {name: memory, weight: 1}
        - {name: example.com/gpu, weight: 1}
"""
SAME_CARD = {"example.com/gpu": 1}
SCORED_POD = pod_template("scoring-test-pod-<index>", requests=SAME_CARD, limits=SAME_CARD)
HALF = {"nodes": 500, "init": 2500, "measured": 2500}
SMALL = {"nodes": 1, "without": 1, "init": 0, "measured": 10}

DEVICES = (
    *case(
        "SchedulingWithResourceClaimTemplate",
        [
            CreateNodes("nodes", NODE),
            _driver(10),
            CreateAny(TEST_CLASS),
            CreatePods("init", POD_WITH_TEMPLATE, "init", (OWNED,)),
            CreatePods("measured", POD_WITH_TEMPLATE, "test", (OWNED,), measured=True),
        ],
        {"5000pods_500nodes": HALF},
    ),
    *_steady(
        sizes={
            "empty_500nodes": {"nodes": 500, "init": 0, "together": 10, "measured": 2500},
            "half_500nodes": {"nodes": 500, "init": 2510, "together": 10, "measured": 2500},
            "full_500nodes": {"nodes": 500, "init": 5000, "together": 10, "measured": 2500},
        }
    ),
    *case(
        "SchedulingWithResourceClaim",
        [
            CreateNodes("nodes", NODE),
            _driver(2),
            CreateAny(TEST_CLASS),
            CreateAny(CLAIM, "init", "initClaims"),
            CreatePods("init", POD_THAT_SHARES, "init"),
            CreateAny(CLAIM, "test", "measuredClaims"),
            CreatePods("measured", POD_THAT_SHARES, "test", measured=True),
        ],
        {"5000pods_500nodes": {**HALF, "initClaims": 500, "measuredClaims": 500}},
    ),
    *case(
        "ExtendedResource",
        [CreateNodes("without"), *_resources_of("example.com/gpu-<number>", "classes")],
        {"fast": {**SMALL, "classes": 10}},
    ),
    *case("ExtendedResource_25Classes", _resources_of("example.com/gpu-<number>", 25), {"5000pods_500nodes": HALF}),
    *case("ExtendedResource_50Classes", _resources_of("example.com/gpu-<number>", 50), {"5000pods_500nodes": HALF}),
    *case(
        "ImplicitExtendedResource_25Classes",
        _resources_of("deviceclass.resource.kubernetes.io/test-class-<number>", 25),
        {"5000pods_500nodes": HALF},
    ),
    *case(
        "ExtendedResourceScoring",
        [
            CreateNodes("nodes", NODE),
            _driver(20),
            CreateAny(
                _class("scoring-test-class-<index>", OF_DRIVER, extendedResourceName="example.com/gpu"), count=20
            ),
            CreatePods("measured", SCORED_POD, "test", measured=True),
        ],
        {"5000pods_500nodes": {"nodes": 500, "measured": 5000}},
        config=SCORING,
    ),
    *case(
        "Partitionable",
        [
            CreateNodes("nodes", NODE),
            CreateAny(
                _slice(f"{POOL}-countersets", POOL, 2, (), sharedCounters=[COUNTER_SET], nodeSelector=EVERY_NODE),
                count="slices",
            ),
            CreateAny(_slice(f"{POOL}-devices", POOL, 2, PARTITIONS, nodeSelector=EVERY_NODE), count="slices"),
            CreateAny(TEST_CLASS),
            CreateAny(
                _claim(
                    "test-claim-with-selector-<index>",
                    [{"name": "req-0", "exactly": {**ONE, "selectors": [{"cel": {"expression": PARTITIONED}}]}}],
                ),
                "init",
                "init",
            ),
            AllocateClaims("init"),
            SteadyPods(10, "measured", POD_WITH_TEMPLATE, (TWO_OF_A_SLICE,), "test"),
        ],
        {"2000pods_100nodes": {"nodes": 100, "slices": 2000, "init": 2000, "measured": 500}},
    ),
    *case(
        "ConsumableCapacity",
        [
            CreateNodes("nodes", NODE),
            _driver(20),
            CreateAny(_slice(POOL, POOL, 1, [SHARED_MEMORY], nodeSelector=EVERY_NODE), count="slices"),
            CreateAny(_class("test-class", SHAREABLE)),
            CreatePods(
                "measured",
                POD_WITH_TEMPLATE,
                "test",
                (_owned_claim(*({"name": f"req-{number}", "exactly": GIGABYTES} for number in range(2))),),
                measured=True,
            ),
        ],
        {"2000pods_100nodes": {"nodes": 100, "slices": 2000, "measured": 2000}},
    ),
    *case(
        "PartitionableBacktracking",
        [
            CreateNodes("without"),
            CreateNodes("nodes", NODE),
            CreateAny(
                _slice(
                    "resourceslice-countersets-<index>",
                    POOL,
                    2,
                    (),
                    sharedCounters=CPUS_AND_MEMORY,
                    nodeSelector=EVERY_NODE,
                ),
                count="slices",
            ),
            CreateAny(
                _slice("resourceslice-devices-<index>", POOL, 2, BACKTRACKING, nodeSelector=EVERY_NODE), count="slices"
            ),
            CreateAny(TEST_CLASS),
            CreatePods(
                "measured",
                POD_WITH_TEMPLATE,
                "test",
                (_owned_claim({"name": "req-0", "exactly": {**ONE, "count": 7}}),),
                measured=True,
            ),
        ],
        {"fast_QueueingHintsEnabled": {"nodes": 1, "without": 1, "slices": 1, "measured": 1}},
        grows=False,
    ),
    *case(
        "FirstAvailable",
        [
            CreateNodes("without"),
            CreateNodes("nodes", NODE),
            _driver(10),
            CreateAny(TEST_CLASS),
            CreateAny(_class("no-devices-class", 'device.driver == "no-such-driver.cdi.k8s.io"')),
            CreateAny(CLAIM, "init", "init"),
            AllocateClaims("init"),
            CreatePods("measured", POD_WITH_TEMPLATE, "test", (_owned_claim(FIRST_AVAILABLE),), measured=True),
        ],
        {"fast_QueueingHintsEnabled": SMALL},
    ),
    # The taint of its DeviceTaintRule stands in the slices, where the rule would have put it.
    *case(
        "DeviceTaintToleration",
        [
            CreateNodes("without"),
            CreateNodes("nodes", NODE),
            _driver(10, taints=[TAINT]),
            CreateAny(TEST_CLASS),
            CreatePods("init", POD_WITH_TEMPLATE, "init", (_owned_claim(TOLERATING),)),
            CreatePods("measured", POD_WITH_TEMPLATE, "test", (_owned_claim(TOLERATING),), measured=True),
        ],
        {"fast_QueueingHintsEnabled": SMALL},
    ),
)

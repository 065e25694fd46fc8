"""Pods with claims in a whole scheduler: what they are given, what is said when they are not, and what wakes them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from podium.framework import Status
from podium.framework.waiting import DeviceWait
from podium.kube import DeviceClass, Pod, ResourceClaim, ResourceSlice
from podium.kube.devices import FINALIZER, Allocation
from podium.kube.versions import find_rules
from podium.plugins.dynamic_resources import plugin as plugin_module
from tests.podium.engine.schedulers import Launched, World
from tests.podium.placement.devices import worlds
from tests.podium.placement.devices.worlds import Obj, device, numbered, request, selectors
from tools.kit.builders import build, make_node, make_pod

PREEMPTION = "preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."
A = f'device.attributes["{worlds.DRIVER}"]'


def class_of_devices(name: str = "c", **spec: Any) -> DeviceClass:
    return build(DeviceClass, worlds.device_class(name, **spec))


def slice_of(name: str, *devices: Obj, **fields: Any) -> ResourceSlice:
    return build(ResourceSlice, worlds.slice_(name, *devices, pool=fields.pop("pool", name), **fields))


def claim(name: str, *requests: Obj, **status: Any) -> ResourceClaim:
    made = worlds.claim(*requests, name=name)
    metadata = {**made["metadata"], "namespace": "default"}
    return build(ResourceClaim, {**made, "metadata": metadata, "status": status})


def pod(name: str = "p1", *claims: str, **spec: Any) -> Pod:
    listed = [{"name": each, "resourceClaimName": each} for each in claims or ("cl",)]
    return make_pod(name, spec={"resourceClaims": listed, **spec})


def world(*objects: Any, nodes: tuple[str, ...] = ("n1", "n2"), **options: Any) -> World:
    made = World(nodes=[make_node(name, labels={"name": name}) for name in nodes], default=True, **options)
    made.add(class_of_devices(), *objects)
    return made


def stored(made: World, name: str = "cl") -> ResourceClaim:
    found = made.cluster.objects.resource_claims.get(f"default/{name}")
    assert found is not None
    return found


def devices_of(made: World, name: str = "cl") -> list[str]:
    allocation = stored(made, name).status.allocation
    return [] if allocation is None else [result.device for result in allocation.devices.results]


def test_without_devices_no_node_can_allocate() -> None:  # S1
    made = world(claim("cl"))
    made.attempt(pod())
    assert made.message == (f"0/2 nodes are available: 2 cannot allocate all claims. {PREEMPTION.format(2)}")


def test_a_class_that_does_not_exist_is_named() -> None:  # S2
    made = world(claim("cl", request(deviceClassName="zz")))
    made.attempt(pod())
    problem = "request r: device class zz does not exist."
    assert made.message == f"0/2 nodes are available: {problem} {PREEMPTION.format(2)}"


def test_a_selector_that_fails_fails_the_attempt() -> None:  # S3
    made = world(claim("a7", request(selectors=selectors(f"{A}.nope == 1"))), slice_of("s", device("d1")))
    made.attempt(pod("p1", "a7"))
    problem = (
        "claim default/a7: selector #0 on device drv.example.com/s/d1: CEL runtime error: no such key: nope. consider "
        "using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    )
    assert made.message == f'running "DynamicResources" filter plugin: {problem}'
    assert made.failures[-1].reason == "SchedulerError"


def test_a_pod_waits_for_its_claim_to_exist() -> None:  # S4
    made = world(slice_of("s", device("d1")))
    made.add(pod())
    assert made.scheduler.schedule_one() is None
    made.add(claim("cl"))
    made.try_next()
    assert made.bound == [("p1", "n1")]


def test_what_is_written_and_shared() -> None:  # S5
    made = world(claim("cl"), slice_of("s", device("d1")))
    made.attempt(pod(), pod("p2"))
    found = stored(made)
    assert FINALIZER in found.metadata.finalizers
    assert found.status.allocation is not None
    assert found.status.allocation.allocation_timestamp == "1970-01-12T13:46:40Z"
    assert devices_of(made) == ["d1"]
    assert [(user.resource, user.name) for user in found.status.reserved_for] == [("pods", "p1"), ("pods", "p2")]
    assert made.bound == [("p1", "n1"), ("p2", "n1")]


def test_a_claim_in_the_way_loses_its_devices() -> None:  # S6
    made = world(claim("cl"), slice_of("s", device("d1")))
    made.attempt(pod())
    found = stored(made)
    made.add(replace(found, status=replace(found.status, reserved_for=())))
    made.attempt(pod("p2", nodeSelector={"name": "n2"}))
    assert "1 resourceclaim not available on the node" in made.message
    assert "deallocation of ResourceClaim completed" in made.message
    assert stored(made).status.allocation is None
    assert FINALIZER in stored(made).metadata.finalizers
    made.pass_time(20)
    made.try_next()
    assert made.message.startswith(
        "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node affinity/selector."
    )


@pytest.mark.parametrize(("minor", "before"), [("1.36", "still not schedulable, "), ("1.37", "")])
def test_v2_claims_that_cannot_be_allocated_are_the_whole_message(minor: str, before: str) -> None:
    made = world(claim("cl"), rules=find_rules(minor).rules)
    made.attempt(pod())
    assert made.message == f"0/2 nodes are available: 2 cannot allocate all claims. {before}{PREEMPTION.format(2)}"


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_v4_a_claim_that_gives_up_its_devices_says_so_in_every_minor(minor: str) -> None:
    made = world(claim("cl"), slice_of("s", device("d1")), rules=find_rules(minor).rules)
    made.attempt(pod())
    made.add(replace(stored(made), status=replace(stored(made).status, reserved_for=())))
    made.attempt(pod("p2", nodeSelector={"name": "n2"}))
    assert made.message == (
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 resourceclaim not available on the node. deallocation of ResourceClaim completed, "
        f"{PREEMPTION.format(2)}"
    )


def test_v37_a_claim_that_is_deleted_with_its_devices_wakes_pods_that_wait_for_some() -> None:
    made = world(claim("cl"), claim("other"), slice_of("s", device("d1")))
    made.attempt(pod("p0", "other"), pod())
    assert made.queued().queue == "unschedulable"
    made.delete(stored(made, "other"))
    assert made.queued().queue != "unschedulable"


def test_nodes_with_preferred_alternatives_come_first() -> None:  # S7
    first = {"name": "a", **worlds.ask(selectors=selectors(f'{A}.m == "a"'))}
    second = {"name": "b", **worlds.ask(selectors=selectors(f'{A}.m == "b"'))}
    slices = [
        slice_of("s1", numbered("d1", "b")),
        slice_of("s2", numbered("d2", "a"), nodeName="n2"),
    ]
    made = world(claim("cl", request(firstAvailable=[first, second])), *slices)
    made.attempt(pod())
    assert made.bound == [("p1", "n2")]


def test_devices_in_flight_are_not_given_twice() -> None:  # S13
    launched = Launched()
    made = world(claim("cl"), claim("other"), slice_of("s", device("d1")), launch=launched)
    made.attempt(pod(), pod("p2"), pod("p3", "other"))
    texts = [failure.message for failure in made.failures]
    assert "resource claim default/cl is in the process of being allocated" in texts[0]
    assert "2 cannot allocate all claims" in texts[1]
    launched.finish()
    assert devices_of(made) == ["d1"]
    made.pass_time(20)
    made.try_next()
    launched.finish()
    assert made.bound == [("p1", "n1"), ("p2", "n1")]


def test_a_write_that_fails_gives_the_devices_back() -> None:
    made = world(claim("cl"), slice_of("s", device("d1")))
    made.claim_answer = Status.error("add allocation and reservation to claim default/cl: no")
    made.attempt(pod())
    assert made.message == (
        'running PreBind plugin "DynamicResources": add allocation and reservation to claim default/cl: no'
    )
    made.claim_answer = None
    made.pass_time(20)
    made.try_next()
    assert devices_of(made) == ["d1"]


def test_a_freed_device_wakes_pods_that_wait_for_one() -> None:
    made = world(claim("cl"), claim("other"), slice_of("s", device("d1")))
    made.attempt(pod(), pod("p2", "other"))
    assert made.place("p2") == "unschedulable"
    found = stored(made)
    made.add(replace(found, status=replace(found.status, allocation=None, reserved_for=())))
    assert made.place("p2") != "unschedulable"
    made.pass_time(20)
    made.try_next()
    assert devices_of(made, "other") == ["d1"]


def gone(made: World) -> None:
    made.delete(stored(made))


def replaced(made: World) -> None:
    made.delete(stored(made))
    another = claim("cl")
    made.add(replace(another, metadata=replace(another.metadata, uid="another")))


def with_other_devices(made: World) -> None:
    found = stored(made)
    assert found.status.allocation is not None
    (result,) = found.status.allocation.devices.results
    other = replace(found.status.allocation.devices, results=(replace(result, device="d2"),))
    allocation = replace(found.status.allocation, devices=other)
    made.add(replace(found, status=replace(found.status, allocation=allocation)))


@pytest.mark.parametrize("hidden", [gone, replaced, with_other_devices])
def test_a_list_that_hides_how_a_device_was_freed_wakes_pods_that_wait_for_one(hidden: Callable[[World], None]) -> None:
    made = world(claim("cl"), claim("other"), slice_of("s", device("d1")))
    made.attempt(pod(), pod("p2", "other"))
    assert made.place("p2") == "unschedulable"
    hidden(made)
    assert made.place("p2") != "unschedulable"
    made.pass_time(20)
    made.try_next()
    assert devices_of(made, "other") == ["d1"]


def test_a_claim_that_had_no_devices_or_keeps_them_wakes_no_pod() -> None:
    made = world(claim("cl"), claim("empty"), claim("other"), slice_of("s", device("d1")))
    made.attempt(pod(), pod("p2", "other"))
    made.delete(stored(made, "empty"))
    found = stored(made)
    made.add(replace(found, status=replace(found.status, reserved_for=())))
    assert made.place("p2") == "unschedulable"


def test_a_freed_device_wakes_no_pod_whose_claim_is_not_there() -> None:
    made = world(claim("cl"), claim("other"), slice_of("s", device("d1")))
    made.attempt(pod(), pod("p2", "other"))
    made.delete(stored(made, "other"))
    made.delete(stored(made))
    assert made.place("p2") == "unschedulable"


@pytest.mark.parametrize("also", [slice_of("new", device("d9"), nodeName="n2"), class_of_devices("c2")])
def test_slices_and_classes_wake_pods(also: Any) -> None:
    made = world(claim("cl"))
    made.attempt(pod())
    made.add(also)
    assert made.place("p1") != "unschedulable"


def test_a_template_pod_waits_for_its_claim_and_for_no_other() -> None:
    made = world(slice_of("s", device("d1")))
    waiting = make_pod("p1", spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]})
    made.add(waiting)
    assert made.scheduler.schedule_one() is None
    named = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "cl"}]}
    changed = make_pod("p1", spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}, status=named)
    changed = replace(changed, metadata=replace(changed.metadata, resource_version="2"))
    made.add(claim("cl"), changed)
    assert made.scheduler.schedule_one() is None
    owner = {"kind": "Pod", "name": "p1", "uid": waiting.uid, "controller": True}
    owned = worlds.claim(name="cl")
    owned["metadata"] |= {"namespace": "default", "uid": "another", "ownerReferences": [owner]}
    made.delete(claim("cl"))
    made.add(build(ResourceClaim, owned))
    made.try_next()
    assert made.bound == [("p1", "n1")]


def test_devices_are_used_by_all_profiles_and_counted_once() -> None:
    made = world(claim("a"), claim("b"), claim("c"), slice_of("s", device("d1"), device("d2")))
    made.attempt(pod("p1", "a"), pod("p2", "b"), pod("p3", "c"))
    assert made.bound == [("p1", "n1"), ("p2", "n1")]
    assert sorted(devices_of(made, "a") + devices_of(made, "b")) == ["d1", "d2"]
    made.delete(stored(made, "a"))
    made.pass_time(400)
    made.try_next()
    assert devices_of(made, "c") == ["d1"]


class Loop:
    """A driver on an event loop, whose writes of claims end when they are let through."""

    def __init__(self, *objects: Any) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.world = world(*objects, launch=self.launch)
        self.written = asyncio.Event()
        self.reserve = self.world.reserve_claim
        self.world.reserve_claim = self.slowly  # type: ignore[method-assign,assignment]

    def launch(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.get_running_loop().create_task(work))
        return self.tasks[-1]

    async def slowly(self, found: ResourceClaim, allocation: Allocation | None, user: Pod) -> Status | None:
        await self.written.wait()
        self.reserve(found, allocation, user)
        return None


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_write_that_is_called_off_keeps_its_devices_until_it_is_known_what_became_of_it() -> None:
    async def main() -> None:
        loop = Loop(claim("cl"), claim("other"), slice_of("s", device("d1")))
        made = loop.world
        made.attempt(pod())
        await settle()
        made.scheduler.profiles["default-scheduler"].handle.pre_binding["default-p1"]("another pod takes its place")
        await settle()
        assert "another pod takes its place" in made.message
        made.attempt(pod("p2", "other"))
        assert "cannot allocate all claims" in made.message
        loop.written.set()
        await settle()
        assert devices_of(made) == ["d1"]
        assert stored(made).status.reserved_for == ()
        made.delete(stored(made))
        made.attempt(pod("p3", "other"))
        await settle()
        assert devices_of(made, "other") == ["d1"]

    asyncio.run(main())


def attached(found: ResourceClaim, name: str, status: str = "True") -> ResourceClaim:
    reported = {"type": name, "status": status, "reason": "Broke", "message": "it broke"}
    devices = [{"driver": worlds.DRIVER, "pool": "s", "device": "d1", "conditions": [reported]}]
    read = build(ResourceClaim, {"metadata": {"name": "x"}, "status": {"devices": devices}})
    return replace(found, status=replace(found.status, devices=read.status.devices))


@pytest.mark.parametrize(
    ("condition", "status", "message"),
    [
        ("Ready", "success", ""),
        (
            "Broken",
            "failed",
            'running PreBind plugin "DynamicResources": device binding failed: claim=cl, reason=Broke, '
            'message="it broke"',
        ),
        ("", "timeout", 'running PreBind plugin "DynamicResources": device binding timeout: claim=cl'),
    ],
)
def test_waits_for_devices_are_heard_of(
    condition: str, status: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conditions = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}

    async def main() -> None:
        loop = Loop(claim("cl"), slice_of("s", device("d1", **conditions)))
        made = loop.world
        begun: list[tuple[str, str]] = []
        ended: list[DeviceWait] = []
        made.scheduler.device_waits.on_begin = lambda who, node: begun.append((who.name, node))
        made.scheduler.device_waits.on_end = ended.append
        monkeypatch.setattr(plugin_module, "POLL_SECONDS", 0)
        loop.written.set()
        made.attempt(pod())
        await settle()
        assert (begun, ended, made.bound) == ([("p1", "n1")], [], [])
        if condition:
            made.add(attached(stored(made), condition))
        made.clock.advance(7 if condition else 700)
        await settle()
        (wait,) = ended
        assert (wait.profile, wait.drivers, wait.awaited) == ("default-scheduler", [worlds.DRIVER], [worlds.DRIVER])
        assert (wait.status, wait.seconds) == (status, 7.0 if condition else 700.0)
        assert made.message == message if message else made.bound == [("p1", "n1")]

    asyncio.run(main())

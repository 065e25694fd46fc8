"""The account of devices after any run of events is what a count from nothing gives: none counts twice, none is lost.

Events are what a watch shows and what a list shows that took the place of events: claims that were replaced by others
of the same name, and claims that have other devices than before.
"""

from collections import Counter
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.cluster.objects import Objects
from podium.kube import ObjectMeta, ResourceClaim
from podium.kube.devices import Allocation, DeviceAllocation, DeviceRequestAllocation, ResourceClaimStatus
from podium.kube.extended_resources import claim_in_memory
from podium.placement.devices.tally import DeviceID, DeviceTally
from podium.placement.devices.uses import DeviceUses
from tools.kit.builders import make_pod

NANO = 10**9
DEVICES = [DeviceID("drv.example.com", pool, name) for pool in ("p", "q") for name in ("d1", "d2")]
CLAIMS = ["a", "b", "c"]

results = st.builds(
    lambda device, fields: DeviceRequestAllocation(
        request="r", driver=device.driver, pool=device.pool, device=device.device, **fields
    ),
    st.sampled_from(DEVICES),
    st.one_of(
        st.just({}),
        st.just({"admin_access": True}),
        st.fixed_dictionaries(
            {
                "share_id": st.sampled_from(["s1", "s2"]),
                "consumed_capacity": st.dictionaries(
                    st.sampled_from(["memory", "lanes"]), st.integers(0, 3).map(str), max_size=2
                ),
            }
        ),
    ),
)
allocations = st.lists(results, max_size=3).map(lambda made: Allocation(devices=DeviceAllocation(results=tuple(made))))
event = st.one_of(
    st.tuples(st.just("set"), st.sampled_from(CLAIMS), st.integers(1, 2), st.none() | allocations),
    st.tuples(st.just("delete"), st.sampled_from(CLAIMS)),
    st.tuples(st.just("assume"), st.sampled_from(CLAIMS), allocations),
    st.tuples(st.just("restore"), st.sampled_from(CLAIMS)),
    st.tuples(st.just("begin"), st.sampled_from(CLAIMS), allocations),
    st.tuples(st.just("end"), st.sampled_from(CLAIMS)),
)


ALONE = Allocation(
    devices=DeviceAllocation(results=(DeviceRequestAllocation(driver="drv.example.com", pool="p", device="d1"),))
)


def claim(name: str, number: int = 1, allocation: Allocation | None = None) -> ResourceClaim:
    """The first or a later claim of a name."""
    metadata = ObjectMeta(name=name, namespace="ns", uid=f"{name}-{number}")
    return ResourceClaim(metadata=metadata, status=ResourceClaimStatus(allocation=allocation))


class Model:
    """Does to an account what events do, and notes what is in flight."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.claims = self.objects.resource_claims
        self.uses = DeviceUses(self.objects)
        self.in_flight: dict[str, Allocation] = {}

    def apply(self, kind: str, name: str, *rest: Any) -> None:
        key = f"ns/{name}"
        known = self.claims.get(key)
        if kind == "set":
            self.claims.set(key, claim(name, *rest))
        elif kind == "delete":
            self.claims.discard(key)
        elif kind == "restore":
            self.claims.restore(key)
        elif known is None:
            return
        elif kind == "assume":
            self.claims.assume(key, replace(known, status=ResourceClaimStatus(allocation=rest[0])))
        elif kind == "end":
            self.uses.end(known)
            self.in_flight.pop(known.uid, None)
        elif known.status.allocation is None:
            self.uses.begin(known, *rest)
            self.in_flight[known.uid] = rest[0]
        self._nothing_is_in_flight_for_what_is_gone_or_has_devices()

    def _nothing_is_in_flight_for_what_is_gone_or_has_devices(self) -> None:
        waiting = {each.uid for each in self.claims if each.status.allocation is None}
        self.in_flight = {uid: given for uid, given in self.in_flight.items() if uid in waiting}

    def counts(self) -> dict[DeviceID, tuple[int, int, dict[str, int]]]:
        """By device: claims that have it alone, shares, and what is consumed, counted from nothing."""
        shown = [each.status.allocation for each in self.claims if each.status.allocation is not None]
        found: dict[DeviceID, tuple[int, int, dict[str, int]]] = {}
        for allocation in (*shown, *self.in_flight.values()):
            for each in allocation.devices.results:
                if each.admin_access:
                    continue
                device = DeviceID(each.driver, each.pool, each.device)
                alone, shares, consumed = found.get(device, (0, 0, {}))
                sums = Counter(consumed)
                sums.update({name: int(amount) * NANO for name, amount in each.consumed_capacity.items()})
                shared = each.share_id is not None
                found[device] = (alone + (not shared), shares + shared, dict(+sums))
        return found


def counted(tally: DeviceTally) -> dict[DeviceID, tuple[int, int, dict[str, int]]]:
    devices = tally.dedicated.keys() | tally.shares.keys() | tally.consumed.keys()
    return {
        each: (tally.dedicated[each], tally.shares[each], dict(+Counter(tally.consumed.get(each, {}))))
        for each in devices
    }


@given(st.lists(event, max_size=30))
@example([("set", "a", 1, None), ("begin", "a", ALONE), ("set", "a", 2, None)])
@example([("set", "a", 1, ALONE), ("set", "a", 2, ALONE), ("delete", "a")])
def test_devices_are_counted_as_if_from_nothing_whatever_happens_to_claims(events: list[Any]) -> None:
    model = Model()
    for each in events:
        model.apply(*each)
        assert counted(model.uses.tally) == model.counts()
        assert all(model.uses.is_in_flight(known) == (known.uid in model.in_flight) for known in model.claims)


@given(st.lists(event, max_size=30))
def test_pools_whose_counts_change_are_in_the_journal(events: list[Any]) -> None:
    model = Model()
    cursor = model.uses.changed_pools.cursor()
    cursor.read()
    for each in events:
        before = model.counts()
        model.apply(*each)
        after = model.counts()
        changed = [each for each in before.keys() | after.keys() if before.get(each) != after.get(each)]
        assert {(each.driver, each.pool) for each in changed} <= set(cursor.read() or ())


def test_a_claim_made_for_a_pod_is_found_when_an_older_one_goes_after_it_came() -> None:
    """A list shows what came before what went."""
    pod = make_pod("p")
    model = Model()
    first, second = (
        replace(made, metadata=replace(made.metadata, name=name, uid=name))
        for made in [claim_in_memory(pod)]
        for name in ("first", "second")
    )
    model.claims.set(first.key, first)
    model.claims.set(second.key, second)
    model.claims.discard(first.key)
    assert model.uses.claim_made_for(pod) is second
    model.claims.set(first.key, first)
    model.claims.discard(first.key)
    assert model.uses.claim_made_for(pod) is second
    model.claims.discard(second.key)
    assert model.uses.claim_made_for(pod) is None

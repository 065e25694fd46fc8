"""Computes what a request consumes of a device's capacity, by the policy that the device has for each capacity.

Without a request it is the policy's default, else the whole capacity. With a range, less than the minimum is the
minimum, and other amounts are rounded up to a step; with valid values it is the first that is large enough. Rounding is
done in whole units, and from Kubernetes 1.37 on in thousandths where the numbers of the range allow it.

Also keeps track of shared counters, from which the partitions of a device take their share.

What is available of a pool is its counter sets less what every allocated device consumes, on whichever node. A device
is refused while any counter of the pool is short, also one that it does not use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from kubecel.quantity import MAX, MILLI, NANO, canonical, format_nano, format_nano_like, parse, units_of
from podium.kube.devices import CapacityRange, CapacityRequestPolicy, CapacityRequirements, DeviceCapacity
from podium.kube.meta import Amount
from podium.kube.versions.devices import DeviceRules
from podium.placement.devices.inventory import CounterName, DevicePool, OfferedDevice
from podium.placement.devices.tally import Consumed, DeviceTally

_UNREPRESENTABLE = "capacity request cannot be represented in the device's range arithmetic"


class UnrepresentableError(Exception):
    """A capacity that cannot be computed with."""


class ConsumedAmount(NamedTuple):
    """An amount in nano units, and as it is written into a claim's status."""

    nano: int
    text: Amount


class Consumption(NamedTuple):
    """What a request consumes of every capacity of a device, whatever is in use of it."""

    amounts: dict[str, ConsumedAmount]
    nano: Consumed
    whole: Consumed
    """How much there is of each capacity."""
    is_allowed: bool
    """Not if the device lacks a capacity that is named, or an amount violates the policy for it."""
    problem: str = ""
    """Why the amounts cannot be computed, where that ends the attempt."""

    def fits(self, in_use: Consumed, being_allocated: Consumed) -> bool:
        """Whether the device has what the request asks for."""
        if not self.is_allowed:
            return False
        for name, amount in self.nano.items():
            if in_use.get(name, 0) + being_allocated.get(name, 0) + amount > self.whole[name]:
                return False
        return True


def consumption(
    capacity: Mapping[str, DeviceCapacity], wanted: CapacityRequirements | None, rules: DeviceRules
) -> Consumption:
    requests = wanted.requests if wanted else {}
    if rules.unrepresentable_is_fatal and any(name not in capacity for name in requests):
        return Consumption({}, {}, {}, is_allowed=False)
    amounts: dict[str, ConsumedAmount] = {}
    for name, each in capacity.items():
        try:
            amounts[name] = _consumed(requests.get(name), each, rules)
        except UnrepresentableError as error:
            return Consumption({}, {}, {}, is_allowed=False, problem=f'capacity "{name}": {error}')
    nano = {name: amount.nano for name, amount in amounts.items()}
    whole = {name: parse(each.value) for name, each in capacity.items()}
    is_allowed = all(name in capacity for name in requests) and not any(
        each.request_policy is not None and _violates(nano[name], each.request_policy, rules)
        for name, each in capacity.items()
    )
    return Consumption(amounts, nano, whole, is_allowed)


def _as_written(amount: Amount) -> ConsumedAmount:
    return ConsumedAmount(parse(amount), amount)


def _consumed(requested: Amount | None, capacity: DeviceCapacity, rules: DeviceRules) -> ConsumedAmount:
    amount = _by_policy(requested, capacity, rules)
    if rules.unrepresentable_is_fatal and amount.nano < 0:
        raise UnrepresentableError("capacity value is negative")
    return amount


def _by_policy(requested: Amount | None, capacity: DeviceCapacity, rules: DeviceRules) -> ConsumedAmount:
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy else None
        return _as_written(capacity.value if default is None else default)
    if policy is None:
        return _as_written(requested)
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(requested, policy.valid_range, policy.valid_range.min, rules)
    for value in policy.valid_values:
        if parse(requested) <= parse(value):
            return _as_written(value)
    return _as_written(requested)


def _rounded_up(requested: Amount, valid: CapacityRange, least: Amount, rules: DeviceRules) -> ConsumedAmount:
    if parse(requested) < parse(least):
        return _as_written(least)
    if valid.step is None:
        return _as_written(requested)
    unit = _unit(valid, rules)
    wanted = parse(requested)
    if rules.unrepresentable_is_fatal:
        if unit == MILLI and not _is_milli(wanted):
            raise UnrepresentableError(
                f"{_UNREPRESENTABLE}: request {canonical(requested)} is not a representable milli value"
            )
        if wanted > MAX * NANO:
            raise UnrepresentableError(f"{_UNREPRESENTABLE}: request {canonical(requested)} exceeds MaxInt64")
    start, step = _counted(parse(least), unit), _counted(parse(valid.step), unit)
    steps = -(-(_counted(wanted, unit) - start) // step) if step > 0 else 0
    if rules.unrepresentable_is_fatal and start + step * steps > MAX:
        reach = "the milli-value range" if unit == MILLI else "MaxInt64"
        message = f"rounding request {canonical(requested)} up to the next step passes {reach}"
        raise UnrepresentableError(f"{_UNREPRESENTABLE}: {message}")
    nano = (start + step * steps) * unit
    text = format_nano_like(nano, valid.step) if rules.rounds_in_format_of_step else format_nano(nano, binary=True)
    return ConsumedAmount(nano, text)


def _unit(valid: CapacityRange, rules: DeviceRules) -> int:
    """What a range is counted in, as nano units: thousandths where they hold all its numbers, else whole units."""
    if not rules.fractional_ranges or (valid.step is not None and parse(valid.step) < MILLI):
        return NANO
    numbers = [parse(each) for each in (valid.min, valid.max, valid.step) if each is not None]
    return MILLI if all(map(_is_milli, numbers)) else NANO


def _is_milli(nano: int) -> bool:
    return nano % MILLI == 0 and abs(nano) <= MAX * MILLI


def _counted(nano: int, unit: int) -> int:
    return units_of(nano) if unit == NANO else nano // unit


def _violates(nano: int, policy: CapacityRequestPolicy, rules: DeviceRules) -> bool:
    if policy.default is not None and nano == parse(policy.default):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and nano > parse(valid.max):
            return True
        unit = _unit(valid, rules)
        step = _counted(parse(valid.step), unit) if valid.step is not None else 0
        least = _counted(parse(valid.min), unit) if valid.min is not None else 0
        if step > 0 and unit == MILLI and not _is_milli(nano):
            return True
        return step > 0 and (_counted(nano, unit) - least) % step != 0
    if policy.valid_values:
        return all(nano != parse(value) for value in policy.valid_values)
    return False


class CounterBalance:
    """What is left of the counters of pools while devices are chosen."""

    def __init__(self, tally: DeviceTally) -> None:
        self._tally = tally
        self._left: dict[DevicePool, dict[CounterName, int]] = {}
        self._taken: Counter[DevicePool] = Counter()

    def take(self, pool: DevicePool, offered: OfferedDevice) -> bool:
        """Take a device's share; False where the pool is short then, and nothing was taken."""
        left = self._of(pool)
        self._taken[pool] += 1
        for counter, amount in offered.counter_shares:
            left[counter] = left.get(counter, 0) - amount
        if all(amount >= 0 for amount in left.values()):
            return True
        self.give_back(pool, offered)
        return False

    def give_back(self, pool: DevicePool, offered: OfferedDevice) -> None:
        left = self._of(pool)
        self._taken[pool] -= 1
        for counter, amount in offered.counter_shares:
            left[counter] += amount

    def is_taken_from(self, pool: DevicePool) -> bool:
        """Whether anything was taken of a pool, beyond what is in use."""
        return self._taken[pool] > 0

    def _of(self, pool: DevicePool) -> dict[CounterName, int]:
        left = self._left.get(pool)
        if left is None:
            left = {
                (name, each): amount for name, counters in pool.counters.items() for each, amount in counters.items()
            }
            for offered in (*pool.devices, *pool.elsewhere):
                if offered.device.consumes_counters and self._tally.is_allocated(offered.id):
                    for counter, amount in offered.counter_shares:
                        left[counter] -= amount
            self._left[pool] = left
        return left

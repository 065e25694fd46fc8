"""Computes what a request consumes of a device's capacity, by the policy that the device has for each capacity.

Without a request it is the policy's default, else the whole capacity. With a range, less than the minimum is the
minimum, and other amounts are rounded up to a step; with valid values it is the first that is large enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubecel.quantity import NANO, format_nano, parse, units_of
from podium.kube.devices import CapacityRange, CapacityRequestPolicy, CapacityRequirements, DeviceCapacity
from podium.kube.meta import Amount
from podium.placement.devices.tally import Consumed


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

    def fits(self, in_use: Consumed, being_allocated: Consumed) -> bool:
        """Whether the device has what the request asks for."""
        if not self.is_allowed:
            return False
        for name, amount in self.nano.items():
            if in_use.get(name, 0) + being_allocated.get(name, 0) + amount > self.whole[name]:
                return False
        return True


def consumption(capacity: Mapping[str, DeviceCapacity], wanted: CapacityRequirements | None) -> Consumption:
    requests = wanted.requests if wanted else {}
    amounts = {name: _consumed(requests.get(name), each) for name, each in capacity.items()}
    nano = {name: amount.nano for name, amount in amounts.items()}
    whole = {name: parse(each.value) for name, each in capacity.items()}
    is_allowed = all(name in capacity for name in requests) and not any(
        each.request_policy is not None and _violates(nano[name], each.request_policy)
        for name, each in capacity.items()
    )
    return Consumption(amounts, nano, whole, is_allowed)


def _as_written(amount: Amount) -> ConsumedAmount:
    return ConsumedAmount(parse(amount), amount)


def _consumed(requested: Amount | None, capacity: DeviceCapacity) -> ConsumedAmount:
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy else None
        return _as_written(capacity.value if default is None else default)
    if policy is None:
        return _as_written(requested)
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_up(requested, policy.valid_range, policy.valid_range.min)
    for value in policy.valid_values:
        if parse(requested) <= parse(value):
            return _as_written(value)
    return _as_written(requested)


def _rounded_up(requested: Amount, valid: CapacityRange, least: Amount) -> ConsumedAmount:
    if parse(requested) < parse(least):
        return _as_written(least)
    if valid.step is None:
        return _as_written(requested)
    start, step = units_of(parse(least)), units_of(parse(valid.step))
    steps = -(-(units_of(parse(requested)) - start) // step) if step > 0 else 0
    nano = (start + step * steps) * NANO
    return ConsumedAmount(nano, format_nano(nano, binary=True))


def _violates(nano: int, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and nano == parse(policy.default):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and nano > parse(valid.max):
            return True
        step = units_of(parse(valid.step)) if valid.step is not None else 0
        least = units_of(parse(valid.min)) if valid.min is not None else 0
        return step > 0 and (units_of(nano) - least) % step != 0
    if policy.valid_values:
        return all(nano != parse(value) for value in policy.valid_values)
    return False

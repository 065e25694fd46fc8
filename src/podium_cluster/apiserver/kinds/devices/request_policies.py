"""Validates how much of a shared device's capacity may be asked for: certain values, or a range in steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubecel.quantity import canonical, format_nano, parse, units
from podium_cluster.apiserver.errors import field_forbidden, invalid_value, required
from podium_cluster.apiserver.kinds.devices.parts import distinct
from podium_cluster.apiserver.validation.wording import Causes, Obj

_MOST_VALUES: Final = 10
_BOTH: Final = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'


def request_policy(path: str, policy: Obj, capacity: Any) -> Causes:
    values, span, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    if values and span is not None:
        yield field_forbidden(path, _BOTH)
    elif values:
        if default is None:
            yield required(f"{path}.default", "required when validValues is defined")
        else:
            yield from _values(f"{path}.validValues", values, default, capacity)
    elif span is not None:
        if default is None:
            yield required(f"{path}.default", "required when validRange is defined")
        else:
            yield from _range(f"{path}.validRange", span, default, capacity)


def _values(path: str, values: Sequence[Any], default: Any, capacity: Any) -> Causes:
    amounts = [parse(value) for value in values]
    for at, value in enumerate(values[1:], start=1):
        if amounts[at - 1] > amounts[at]:
            yield invalid_value(f"{path}[{at}]", canonical(value), "values must be sorted in ascending order")

    def check(where: str, value: Any) -> Causes:
        if parse(value) > parse(capacity):
            detail = f"option is larger than capacity value: {canonical(capacity)}"
            yield invalid_value(where, canonical(value), detail)

    yield from distinct(path, values, _MOST_VALUES, check, lambda value: str(units(value)))
    if len(values) > _MOST_VALUES or parse(default) not in amounts:
        yield invalid_value(path, canonical(default), "default value is not valid according to the requestPolicy")


def _range(path: str, span: Obj, default: Any, capacity: Any) -> Causes:
    least, most, step = span.get("min"), span.get("max"), span.get("step")
    if least is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    value, least_amount, whole = parse(default), parse(least), parse(capacity)
    if least_amount > whole:
        detail = f"min is larger than capacity value: {canonical(capacity)}"
        yield invalid_value(f"{path}.min", canonical(least), detail)
    if value < least_amount:
        yield invalid_value(f"{path}.default", canonical(default), f"default is less than min: {canonical(least)}")
    if most is not None:
        if least_amount > parse(most):
            yield invalid_value(f"{path}.max", canonical(least), f"min is larger than max: {canonical(most)}")
        if parse(most) > whole:
            detail = f"max is larger than capacity value: {canonical(capacity)}"
            yield invalid_value(f"{path}.max", canonical(most), detail)
        if value > parse(most):
            yield invalid_value(f"{path}.max", canonical(default), f"default is more than max: {canonical(most)}")
    if step is not None:
        yield from _steps(f"{path}.step", least, step, capacity, [default, *([most] if most is not None else [])])


def _steps(path: str, least: Any, step: Any, capacity: Any, values: Sequence[Any]) -> Causes:
    if parse(least) + parse(step) > parse(capacity):
        reached = format_nano(parse(least) + parse(step), binary=canonical(least).endswith("i"))
        detail = f"one step {reached} is larger than capacity value: {canonical(capacity)}"
        yield invalid_value(path, canonical(step), detail)
    for value in values:
        if not units(step) or (units(value) - units(least)) % units(step):  # kube-apiserver fails with a step of 0
            detail = f"value is not a multiple of a given step ({canonical(step)}) from ({canonical(least)})"
            yield invalid_value(path, canonical(value), detail)

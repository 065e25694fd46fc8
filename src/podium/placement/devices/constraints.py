"""Checks the constraints between devices of a claim: one attribute equal on all, or different on each.

A device that lacks the attribute violates a constraint. Versions compare as texts. A distinct constraint compares with
all devices that were taken. Before Kubernetes 1.37 it remembered one value for each request, that of the last device,
so within a request only neighbours were compared.
"""

from __future__ import annotations

from podium.kube.devices import Device, DeviceAttribute, DeviceConstraint
from podium.kube.versions.devices import DeviceRules
from podium.placement.devices.tally import DeviceID

TypedValue = tuple[str, object]
"""A value with its type: equal texts of a version and a string are not the same."""


class ConstraintState:
    """A constraint while devices of its claim are chosen."""

    def __init__(self, constraint: DeviceConstraint, rules: DeviceRules) -> None:
        self._compares_all = rules.distinct_compares_all
        self._requests = frozenset(constraint.requests)
        self._attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        self._distinct = constraint.match_attribute is None
        self._first: DeviceAttribute | None = None
        self._of_request: dict[str, DeviceAttribute] = {}
        self._all: list[DeviceAttribute] = []
        self._devices = 0

    def add(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> bool:
        """Take a device into account; False where it violates the constraint, and then nothing has changed."""
        if not self._applies(request, subrequest):
            return True
        if not self.allows(request, subrequest, device, device_id):
            return False
        attribute = attribute_of(device, device_id, self._attribute)
        assert attribute is not None
        if self._devices == 0:
            self._first = attribute
        if self._distinct and self._compares_all:
            self._all.append(attribute)
        elif self._distinct:
            self._of_request[request] = attribute
        self._devices += 1
        return True

    def allows(self, request: str, subrequest: str, device: Device, device_id: DeviceID) -> bool:
        """Whether a device could be taken into account."""
        if not self._applies(request, subrequest):
            return True
        attribute = attribute_of(device, device_id, self._attribute)
        if attribute is None:
            return False
        if self._devices == 0:
            return True
        if self._distinct:
            others = self._all if self._compares_all else self._of_request.values()
            return not any(_repeats(attribute, other) for other in others)
        return _same(attribute, self._first)

    def required(self, request: str, subrequest: str) -> tuple[str, TypedValue] | None:
        """The attribute, and the value of it that devices of a request must have from now on."""
        if self._distinct or self._first is None or not self._devices or not self._applies(request, subrequest):
            return None
        typed = typed_value(self._first)
        return None if typed is None else (self._attribute, typed)

    def forgets(self, request: str, subrequest: str) -> bool:
        """Whether a device that is removed leaves less behind than was there before it was added."""
        return self._distinct and not self._compares_all and self._applies(request, subrequest)

    def remove(self, request: str, subrequest: str) -> None:
        if self._applies(request, subrequest):
            if self._all:
                self._all.pop()
            self._of_request.pop(request, None)
            self._devices -= 1

    def _applies(self, request: str, subrequest: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(subrequest) and f"{request}/{subrequest}" in self._requests


def attribute_of(device: Device, device_id: DeviceID, name: str) -> DeviceAttribute | None:
    found = device.attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    return device.attributes.get(identifier) if slash and domain == device_id.driver else None


def typed_value(attribute: DeviceAttribute) -> TypedValue | None:
    for kind, value in (
        ("string", attribute.string_value),
        ("int", attribute.int_value),
        ("bool", attribute.bool_value),
        ("version", attribute.version_value),
    ):
        if value is not None:
            return kind, value
    return None


def _same(one: DeviceAttribute, other: DeviceAttribute | None) -> bool:
    typed = typed_value(one)
    return typed is not None and other is not None and typed == typed_value(other)


def _repeats(one: DeviceAttribute, other: DeviceAttribute) -> bool:
    """Whether a value is there already; one of no known type counts as such."""
    typed = typed_value(one)
    return typed is None or typed == typed_value(other)

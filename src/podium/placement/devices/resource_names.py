"""Finds the device class behind the name of an extended resource.

A class stands behind `deviceclass.resource.kubernetes.io/<its name>`, and behind the name that it gives itself. Of two
with one name the newer wins, of two of the same age the one that comes first by name. Three habits are
kube-scheduler's: a class that loses when it comes is not known by its own name either, a change that leaves the name as
it is is not noticed, and deleting any class takes the name away that it gave itself.
"""

from __future__ import annotations

from podium.kube import DeviceClass
from podium.kube.extended_resources import DEVICE_CLASS_PREFIX
from podium.kube.meta import parse_time


class DeviceResourceNames:
    """The classes by the names of resources."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        self.version = 0
        """Moves with every change."""

    def class_of(self, resource: str) -> DeviceClass | None:
        return self._classes.get(resource)

    def class_changed(self, _key: str, before: DeviceClass | None, after: DeviceClass | None) -> None:
        self.version += 1
        if after is None:
            if before is not None:
                self._forget(before)
            return
        name = after.spec.extended_resource_name
        rival = self._classes.get(name) if name else None
        if rival is not None and not _prevails(after, rival):
            return
        if before is not None:
            self._forget(before)
        if name:
            self._classes[name] = after
        self._classes[DEVICE_CLASS_PREFIX + after.name] = after

    def _forget(self, gone: DeviceClass) -> None:
        self._classes.pop(DEVICE_CLASS_PREFIX + gone.name, None)
        if gone.spec.extended_resource_name:
            self._classes.pop(gone.spec.extended_resource_name, None)


def _prevails(one: DeviceClass, other: DeviceClass) -> bool:
    made, others = _made(one), _made(other)
    return one.name < other.name if made == others else made > others


def _made(each: DeviceClass) -> float:
    made = each.metadata.creation_timestamp
    return parse_time(made) if made else 0.0

"""Adds up and compares what pods request and nodes offer, read from the API's data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kubecel.quantity import milli, units


class Amounts(NamedTuple):
    """CPU in thousandths, bytes, and a number of pods."""

    cpu: int
    memory: int
    pods: int

    def plus(self, other: Amounts) -> Amounts:
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def within(self, other: Amounts) -> bool:
        return self.cpu <= other.cpu and self.memory <= other.memory and self.pods <= other.pods


def requests_of(pod: dict[str, Any]) -> Amounts:
    total = Amounts(0, 0, 1)
    for container in pod["spec"]["containers"]:
        requests = container.get("resources", {}).get("requests", {})
        total = total.plus(Amounts(milli(requests.get("cpu", "0")), units(requests.get("memory", "0")), 0))
    return total


def allocatable_of(allocatable: Any) -> Amounts:
    return Amounts(milli(allocatable["cpu"]), units(allocatable["memory"]), units(allocatable["pods"]))


def sum_of(amounts: Iterable[Amounts]) -> Amounts:
    total = Amounts(0, 0, 0)
    for each in amounts:
        total = total.plus(each)
    return total

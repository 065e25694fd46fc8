"""Seeded chance, and the words that random clusters are made of.

Everything random in a parity run comes from a `Dice` seeded by (seed, cluster index), so one cluster can be made again
without the ones before it. The vocabulary is kept small on purpose: labels, zones and claims must often meet, or no
selector ever matches and every plugin stays trivial.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Obj = dict[str, Any]

NAMESPACES = ("default", "alpha", "beta", "gamma")
NAMESPACE_LABELS = {"env": ("prod", "test"), "team": ("red", "blue")}

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
RACK = "example.com/rack"

ZONES = ("z1", "z2", "z3")
NODE_LABELS = {"disk": ("ssd", "hdd"), "gen": ("1", "3", "5", "07", "old"), "pool": ("a", "b")}
POD_LABELS = {"app": ("web", "db", "cache"), "tier": ("front", "back"), "release": ("1", "2")}

TAINTS = (("dedicated", "red"), ("dedicated", "blue"), ("flaky", ""), ("load", "7"), ("soft", "yes"))

GPU = "example.com/gpu"
NIC = "vendor.test/nic"
CARD = "devices.test/card"
HUGEPAGES = "hugepages-2Mi"

IMAGES = ("example.test/web:1", "example.test/db:1", "example.test/tool", "example.test:5000/big", "plain")

RUNTIME_CLASSES = ("light", "heavy", "picky")

MIB = 1 << 20
GIB = 1 << 30


class Dice(random.Random):
    """A random generator that speaks the words of this package."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return self.choice(options)

    def some(self, options: Sequence[T], low: int, high: int) -> list[T]:
        """Between low and high different options, in random order."""
        return self.sample(list(options), min(len(options), self.randint(low, high)))

    def weighted(self, weights: Mapping[T, float]) -> T:
        return self.choices(list(weights), list(weights.values()))[0]

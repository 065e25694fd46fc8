"""Reads what `/metrics` says, ours and kube-scheduler's alike, into families that can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families


class Family(NamedTuple):
    kind: str
    labels: frozenset[str]
    """Those of its samples; "le" is none of them."""
    buckets: tuple[float, ...]
    values: Mapping[frozenset[tuple[str, str]], float]
    """By label values; of a histogram, how often it was observed."""
    sums: Mapping[frozenset[tuple[str, str]], float]

    def value(self, **labels: str) -> float:
        """Summed over all samples that have these label values."""
        wanted = set(labels.items())
        return sum(value for has, value in self.values.items() if wanted <= has)


def families_of(text: str) -> dict[str, Family]:
    """By the name a query would use: counters end in "_total"."""
    found: dict[str, Family] = {}
    for metric in text_string_to_metric_families(text):
        labels: set[str] = set()
        buckets: set[float] = set()
        values: dict[frozenset[tuple[str, str]], float] = {}
        sums: dict[frozenset[tuple[str, str]], float] = {}
        for sample in metric.samples:
            has = frozenset((name, value) for name, value in sample.labels.items() if name != "le")
            labels |= {name for name, _value in has}
            if sample.name.endswith("_bucket"):
                buckets.add(float(sample.labels["le"]))
            elif metric.type == "histogram" and sample.name.endswith("_sum"):
                sums[has] = sample.value
            else:
                values[has] = sample.value
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        found[name] = Family(metric.type, frozenset(labels), tuple(sorted(buckets)), values, sums)
    return found

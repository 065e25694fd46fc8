"""Keeps the prices of a cluster's GPU models until one of them has moved by `PRICE_STEP`.

    price(g) = min(4, D(g) · idle GPU of the cluster / idle GPU of model g)

D comes from what is known of the workload (see `knowledge`). Answers that depend on prices hold while `generation` is
equal: renewed at every small step, they would hold for one pod only.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium_plugins.gpu.knowledge import price

PRICE_STEP = 0.05


class Prices:
    """The prices by model, and how often they were renewed."""

    def __init__(self) -> None:
        self.generation = 0
        self.by_model: dict[str, float] = {}

    def renew(self, demand: Mapping[str, float], free: Mapping[str, int]) -> None:
        """Renew all where one has moved; `free` is the idle GPU by model, `demand` D by model."""
        total = sum(free.values())
        before = self.by_model
        for model, share in demand.items():
            if abs(price(share, free.get(model, 0), total) - before.get(model, 0.0)) >= PRICE_STEP:
                break
        else:
            return
        self.by_model = {model: price(share, free.get(model, 0), total) for model, share in demand.items()}
        self.generation += 1

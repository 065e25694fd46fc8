"""Draws pods: when they arrive, what they ask for and how long they run, each from its own seeded stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from podium.config.durations import SECOND
from podium.kube.meta import Amount
from podium_lab.simulator.distributions import Draw, generator, sampler
from podium_lab.simulator.pods import FOREVER, PodArrival, PodTemplate, plain_spec
from podium_lab.simulator.scenario import Distribution, Generated, PodShape, ScenarioError

MOST_TEMPLATES = 10_000
"""Drawn requests that are remembered; where they vary more, pods get templates of their own."""
MEBI = 2**20


def arrivals(given: Generated, seed: int) -> Iterator[PodArrival]:
    """The pods as they arrive."""
    interval = sampler(given.interval, generator(seed, "arrivals"), time=True)
    batch = sampler(given.batch, generator(seed, "order"))
    lifetime: Draw | None = None
    if given.lifetime is not None:
        lifetime = sampler(given.lifetime, generator(seed, "lifetimes"), time=True)
    template_of = _templates(given, generator(seed, "shapes"))
    at, together, name = given.start / SECOND, 0, given.name
    for index in range(given.count):
        if together <= 0:
            at += interval() if index else 0.0
            together = max(1, round(batch()))
        together -= 1
        yield PodArrival(at, f"{name}-{index}", template_of(), FOREVER if lifetime is None else lifetime())


def _templates(given: Generated, rng: np.random.Generator) -> Callable[[], PodTemplate]:
    makers = [_maker(shape, shape.name or f"shapes[{i}]", given.namespace, rng) for i, shape in enumerate(given.shapes)]
    if len(makers) == 1:
        return makers[0]
    weights = {str(i): shape.weight for i, shape in enumerate(given.shapes)}
    which = sampler(Distribution(choice=weights), np.random.default_rng(rng.integers(2**63)))

    def draw() -> PodTemplate:
        return makers[int(which())]()

    return draw


def _maker(shape: PodShape, called: str, namespace: str, rng: np.random.Generator) -> Callable[[], PodTemplate]:
    drawn = [
        (kind, name, sampler(amount, np.random.default_rng(rng.integers(2**63))))
        for kind in ("requests", "limits")
        for name, amount in getattr(shape, kind).items()
        if isinstance(amount, Distribution)
    ]
    constant: dict[str, dict[str, Amount]] = {
        kind: {name: amount for name, amount in getattr(shape, kind).items() if not isinstance(amount, Distribution)}
        for kind in ("requests", "limits")
    }

    def make(amounts: tuple[str, ...]) -> PodTemplate:
        resources = {kind: dict(given) for kind, given in constant.items()}
        for (kind, name, _), amount in zip(drawn, amounts, strict=True):
            resources[kind][name] = amount
        try:
            spec = plain_spec(
                resources["requests"], resources["limits"], priority=shape.priority or None, further=shape.spec
            )
        except msgspec.ValidationError as error:
            raise ScenarioError(f"workload: the spec of a shape is not that of a pod: {error}") from None
        return PodTemplate(spec, namespace=namespace, labels=shape.labels, annotations=shape.annotations, shape=called)

    if not drawn:
        only = make(())
        return lambda: only
    known: dict[tuple[str, ...], PodTemplate] = {}

    def draw() -> PodTemplate:
        amounts = tuple([_text(name, amount()) for _, name, amount in drawn])
        template = known.get(amounts)
        if template is None:
            if len(known) >= MOST_TEMPLATES:
                known.clear()
            template = known[amounts] = make(amounts)
        return template

    return draw


def _text(name: str, amount: float) -> str:
    """A drawn amount as a quantity: thousandths of a core, whole MiB, whole units of everything else."""
    if name == "cpu":
        return f"{max(1, round(1000 * amount))}m"
    if name in ("memory", "ephemeral-storage"):
        return f"{max(1, round(amount / MEBI))}Mi"
    return str(round(amount))

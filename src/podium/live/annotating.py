"""Measuring nodes and writing what was measured onto them, once or again and again.

A round lists what it needs, measures, and writes. What goes wrong in a round is told, and the next one tries again;
somebody who asked for one round gets it as the answer, and the exit code 1. In a log the same trouble is told once, and
once more when it is over.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from podium.client import RESOURCES, ApiError, Client, ClientError, Resource, missing_rule
from podium.client.listing import list_all
from podium.client.reading import Reader
from podium.framework.clock import Clock
from podium.kube import Pod
from podium.live.annotate import Annotator, ForbiddenError, Kind, Outcome
from podium.live.snapshot import fetch_nodes
from podium.serving.log import LOG
from podium.telemetry import allocation, usage
from podium.telemetry.usage import Usage, UsageSettings

USAGE = Kind("podium-annotate-usage", usage.KEYS, "usage-measured-at")
ALLOCATION = Kind("podium-annotate-allocation", allocation.KEYS, "allocation-measured-at")
FINE, FAILED = 0, 1

Measured = Mapping[str, Mapping[str, str]]
"""Annotations by node."""


class Pace(NamedTuple):
    """How often and how exactly; `interval` None: once, and then `tell` and `complain` get the answer."""

    interval: float | None
    max_age: float
    tolerance: float = 0.0
    tell: Callable[[str], None] = LOG.info
    complain: Callable[[str], None] = LOG.warning


class Round(NamedTuple):
    outcome: Outcome
    problems: list[str]


async def annotate_usage(
    client: Client, settings: UsageSettings, pace: Pace, *, clock: Clock, rng: random.Random, stop: asyncio.Event
) -> int:
    measuring = Usage(settings, clock=clock, rng=rng)
    annotator = Annotator(client, USAGE, max_age=pace.max_age, tolerance=pace.tolerance)

    async def one_round() -> Round:
        nodes, now = await fetch_nodes(client), clock.now()
        measured = await measuring.measure(nodes, now)
        return Round(await annotator.write(nodes, measured, now), measuring.problems)

    try:
        return await _rounds(one_round, pace, stop)
    finally:
        await measuring.close()


async def annotate_allocation(client: Client, gpu: str, pace: Pace, *, clock: Clock, stop: asyncio.Event) -> int:
    annotator = Annotator(client, ALLOCATION, max_age=pace.max_age, tolerance=pace.tolerance)

    async def one_round() -> Round:
        nodes, now = await fetch_nodes(client), clock.now()
        measured = allocation.allocations(nodes, await _pods(client, RESOURCES[Pod]), gpu)
        return Round(await annotator.write(nodes, measured, now), [])

    return await _rounds(one_round, pace, stop)


async def _pods(client: Client, resource: Resource[Pod]) -> Sequence[Pod]:
    found, _version = await list_all(client, resource, Reader(resource))
    return [each.object for each in found if each.object is not None]


async def _rounds(one_round: Callable[[], Awaitable[Round]], pace: Pace, stop: asyncio.Event) -> int:
    if pace.interval is None:
        said, problems = await _try(one_round)
        if said:
            pace.tell(said)
        for problem in problems:
            pace.complain(problem)
        return FAILED if problems else FINE
    loop = asyncio.get_running_loop()
    told: list[str] = []
    while True:
        began = loop.time()
        said, problems = await _try(one_round)
        if said:
            LOG.info("%s", said)
        for problem in problems:
            if problem not in told:
                LOG.warning("%s", problem)
        if told and not problems:
            LOG.info("nodes are annotated again")
        told = problems
        try:
            async with asyncio.timeout(max(0.0, began + pace.interval - loop.time())):
                await stop.wait()
            return FINE
        except TimeoutError:
            continue


async def _try(one_round: Callable[[], Awaitable[Round]]) -> tuple[str, list[str]]:
    """What became of a round, and what went wrong in it."""
    try:
        outcome, problems = await one_round()
    except ForbiddenError as error:
        return "", [str(error)]
    except ApiError as error:
        rule = missing_rule(error)
        return "", [f"nodes cannot be annotated: the role needs the rule {rule}" if rule else str(error)]
    except ClientError as error:
        return "", [str(error)]
    if outcome.failed:
        name, problem = min(outcome.failed.items())
        more = f" (and {len(outcome.failed) - 1} more)" if len(outcome.failed) > 1 else ""
        problems = [*problems, f"node {name}{more} cannot be annotated: {problem}"]
    return str(outcome), problems

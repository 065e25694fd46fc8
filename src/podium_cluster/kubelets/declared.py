"""Reads what a pod's annotations declare about its life here: how long it takes to start, how long it runs, how it ends
and what it uses. An annotation that cannot be read counts as absent and is reported once, as an event."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import msgspec

from podium_cluster.kubelets.random_values import DrawError, Drawn, amount, duration

DURATION = "podium.dev/duration"
STARTUP = "podium.dev/startup"
SHUTDOWN = "podium.dev/shutdown"
EXIT_CODE = "podium.dev/exit-code"
USAGE_CPU = "podium.dev/usage-cpu"
USAGE_MEMORY = "podium.dev/usage-memory"

DEFAULT_STARTUP = duration("uniform(500ms,1500ms)")
DEFAULT_SHUTDOWN = duration("uniform(200ms,1s)")
DEFAULT_JOB_DURATION = duration("lognormal(20s,0.5)")
DEFAULT_CPU = amount("uniform(20%,80%)")
DEFAULT_MEMORY = amount("uniform(50%,90%)")


class Declared(msgspec.Struct, frozen=True):
    startup: Drawn
    shutdown: Drawn
    duration: Drawn | None
    """None: runs until it is deleted."""
    exit_code: int
    exit_likelihood: float
    cpu: Drawn
    memory: Drawn
    complaints: tuple[str, ...] = ()

    def draw_exit_code(self, rng: random.Random) -> int:
        if self.exit_likelihood >= 1:
            return self.exit_code
        return self.exit_code if rng.random() < self.exit_likelihood else 0


def declared(annotations: Mapping[str, str], *, of_job: bool) -> Declared:
    complaints: list[str] = []

    def read(key: str, reader: Callable[[str], Drawn], default: Drawn) -> Drawn:
        try:
            return reader(annotations[key]) if key in annotations else default
        except DrawError as error:
            complaints.append(f"annotation {key}: {error}")
            return default

    lasting = DEFAULT_JOB_DURATION if of_job else None
    if DURATION in annotations:
        lasting = read(DURATION, duration, DEFAULT_JOB_DURATION)
    code, likelihood = 0, 1.0
    try:
        code, likelihood = _exit_code(annotations.get(EXIT_CODE, "0"))
    except ValueError:
        complaints.append(
            f'annotation {EXIT_CODE}: "{annotations[EXIT_CODE]}" cannot be read; '
            'write a number such as "1", or "1@0.2" for a likelihood of 20 %'
        )
    return Declared(
        startup=read(STARTUP, duration, DEFAULT_STARTUP),
        shutdown=read(SHUTDOWN, duration, DEFAULT_SHUTDOWN),
        duration=lasting,
        exit_code=code,
        exit_likelihood=likelihood,
        cpu=read(USAGE_CPU, amount, DEFAULT_CPU),
        memory=read(USAGE_MEMORY, amount, DEFAULT_MEMORY),
        complaints=tuple(complaints),
    )


def _exit_code(text: str) -> tuple[int, float]:
    code, at, likelihood = text.partition("@")
    number, share = int(code), float(likelihood) if at else 1.0
    if not 0 <= number <= 255 or not 0 <= share <= 1:
        raise ValueError
    return number, share

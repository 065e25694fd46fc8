"""Says what `podium up` does: as lines on a pipe, or in the live view of a terminal, which is another Screen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from rich.console import Console

from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.kube.printable import printable, printable_lines
from podium_cluster.up.picture import Picture
from podium_cluster.up.pod_tracker import PodDecision, PodVerdict

_LOOK: Final = 0.25
"""Seconds between two looks at what no write to the API tells."""
_LINES: Final = {
    PodVerdict.PLACED: "placed {pod} on {node}",
    PodVerdict.REFUSED: "no node for {pod}: {why}",
    PodVerdict.FAILED: "error for {pod}: {why}",
    PodVerdict.HELD: "held {pod} at Permit: {why}",
}


class Camera(NamedTuple):
    """What a screen may ask of the cluster while it shows it."""

    picture: Callable[[], Awaitable[Picture]]
    held: Callable[[], Awaitable[list[PodDecision]]]
    """The pods that plugins hold at Permit: a small part of the picture."""
    describe_node: Callable[[str], str]
    in_charge: Callable[[], tuple[SchedulerConfig, Registry]]
    """What the scheduler runs with now."""


class Screen(Protocol):
    """Where `podium up` prints: a terminal or a pipe."""

    def say(self, text: str) -> None:
        """Print text that is read once."""

    def show_page(self, title: str, text: str) -> None:
        """Print text of many lines, under a title."""

    def show_decision(self, decision: PodDecision) -> None: ...

    async def run(self, camera: Camera) -> None:
        """Show the cluster until its reader ends that, or until cancelled."""


class PlainScreen:
    """Plain lines on standard output, for as long as it has a reader."""

    def __init__(self, has_reader: Callable[[], bool]) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._has_reader = has_reader

    def say(self, text: str) -> None:
        self._console.print(printable_lines(text))

    def show_page(self, title: str, text: str) -> None:
        self.say(f"\n{title}\n\n{text}")

    def show_decision(self, decision: PodDecision) -> None:
        self._console.print(printable(line(decision)))

    async def run(self, camera: Camera) -> None:
        known: list[PodDecision] = []
        while self._has_reader():
            before, known = known, await camera.held()
            for each in known:
                if each not in before:
                    self.show_decision(each)
            await asyncio.sleep(_LOOK)


def line(decision: PodDecision) -> str:
    """A decision where there is no terminal.

    >>> line(PodDecision("shop/web", PodVerdict.PLACED, "node-1"))
    'placed shop/web on node-1'
    """
    return _LINES[decision.verdict].format(**decision._asdict())


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "node"), counted(2, "IngressClass"), counted(3, "NetworkPolicy")
    ('1 node', '2 IngressClasses', '3 NetworkPolicies')
    """
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"

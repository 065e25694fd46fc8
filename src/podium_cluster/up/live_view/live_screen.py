"""Runs the live view: takes pictures of the cluster, draws them, and does what keys ask for."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import fill
from typing import Final, TextIO, cast

from rich.console import Console
from rich.text import Text

from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.kube.printable import printable, printable_lines
from podium.serving.log import LOG
from podium_cluster.up.live_view.browsing import Browsing, Effect, press
from podium_cluster.up.live_view.frame import PAGE_LINES, draw
from podium_cluster.up.live_view.messages import MessageLog, Messages, PrintedLines, ViewMessage
from podium_cluster.up.live_view.rows import Page, Rows, rendered_page, rows_of, text_page
from podium_cluster.up.live_view.terminal import Terminal
from podium_cluster.up.picture import NodeBar, Picture, ServedAt
from podium_cluster.up.pod_tracker import PodDecision
from podium_cluster.up.screen import Camera

REDRAWN: Final = 0.25
"""Seconds between two pictures."""
_REST, _LONGEST_REST = 9, 2.0
"""A picture that takes long is taken less often: between two, this many times as long as one took, up to seconds."""

Explain = Callable[[str, str, SchedulerConfig, Registry], Callable[[int], str]]
"""Explains a pod of the cluster of a kubeconfig, in a thread; what comes back makes the text for a width."""
KEYS = {
    "q, Ctrl-C": "end the cluster; on a page, q goes back",
    "Up, Down, j, k": "select a row; past the end of a list, the next one",
    "PgUp, PgDn, Home, End": "go far in a list or on a page",
    "Tab, Shift-Tab": "go to the next list: nodes, waiting, messages, last placed",
    "Enter": "a pod: where it would go and why, or why it goes nowhere; a node: what is on it; a message: all of it",
    "Esc": "back; in the view, clear the filter",
    "/": "filter all lists by what you type",
    "s": "sort the nodes by name, cpu, memory, pods",
    "Ctrl-L": "draw everything again",
    "?": "this help",
}
_WIDTH = max(map(len, KEYS)) + 2
_PARTS = (
    "The bars and percentages of a node say how much of its cpu and memory the requests of its pods take.",
    "A waiting pod is in one of these states:",
    "  error        a plugin failed or gave a wrong answer",
    "  held         it has a node, and a plugin holds it at Permit",
    "  no node      no node takes it; the reason is the scheduler's",
    "  gated        it has scheduling gates, or a plugin keeps it out of the queue",
    "  to be tried  it has not been judged yet",
)


class LiveScreen:
    """A picture that fills the terminal until its user ends it."""

    def __init__(self, explain: Explain) -> None:
        self._explain = explain
        self._console = Console(highlight=False, markup=False, emoji=False)
        self._messages = Messages()
        self._browsing = Browsing()
        self._picture: Picture | None = None
        self._camera: Camera | None = None
        self._terminal: Terminal | None = None
        self._ended = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None
        self._touched = False

    def say(self, text: str) -> None:
        if self._terminal is None:
            self._console.print(Text(printable_lines(text)), soft_wrap=True)
        else:
            self._messages.add(text)

    def show_page(self, title: str, text: str) -> None:
        """At once, unless the user has begun to look around."""
        self.say(f"{title}\n\n{text}")
        if not self._touched:
            self._open(text_page(title, text))

    def show_decision(self, decision: PodDecision) -> None:
        """Nothing: the picture has them."""

    async def run(self, camera: Camera) -> None:
        self._camera = camera
        self._terminal = terminal = Terminal(self._press, self._draw)
        try:
            with self._everything_is_a_message():
                while not self._ended.is_set():
                    began = time.monotonic()
                    self._picture = await camera.picture()
                    self._draw()
                    rest = min(_LONGEST_REST, _REST * (time.monotonic() - began))
                    await self._wait(max(REDRAWN, rest))
        finally:
            if self._asking is not None:
                self._asking.cancel()
            terminal.close()
            self._terminal = None
            for text in self._messages.texts():
                self.say(text)

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._ended.wait(), seconds)
        except TimeoutError:
            return

    def _draw(self) -> None:
        if self._terminal is not None and self._picture is not None:
            self._terminal.show(draw(self._picture, self._rows(self._picture), self._browsing, self._terminal.size))

    def _rows(self, picture: Picture) -> Rows:
        return rows_of(picture, self._messages.newest_first(), self._browsing.sort, self._browsing.needle)

    def _press(self, key: str) -> None:
        if self._terminal is None or self._picture is None:
            self._ended.set() if key == "q" else None
            return
        self._touched = True
        size = self._terminal.size
        rows = self._rows(self._picture)
        self._browsing, effect = press(self._browsing, key, rows, size.height - PAGE_LINES, size.width)
        match effect:
            case Effect.END:
                self._ended.set()
            case Effect.HELP:
                self._open(help_page(self._picture.service))
            case Effect.OPEN:
                self._open_row(rows)
            case Effect.REDRAW:
                self._terminal.forget()
        self._draw()

    def _open_row(self, rows: Rows) -> None:
        found = rows.of(self._browsing.section)
        match found[self._browsing.selected(found)]:
            case NodeBar() as node:
                assert self._camera is not None
                self._open(text_page(f"node {node.name}", self._camera.describe_node(node.name)))
            case PodDecision() as pod:
                self._open_explanation(pod)
            case ViewMessage() as message:
                self._open(text_page(message.level or "message", message.text))

    def _open_explanation(self, pod: PodDecision) -> None:
        """What was decided at once, and beneath it, when that has been found out, what `podium explain` says."""
        title = f"pod {pod.pod}"
        self._open(text_page(title, f"{_standing(pod)}\n\nasking where it would go …"))
        waiting = self._browsing.page
        if self._asking is not None:
            self._asking.cancel()

        async def ask() -> None:
            assert self._camera is not None
            assert self._picture is not None
            config, registry = self._camera.in_charge()
            kubeconfig = self._picture.service.kubeconfig
            render = await asyncio.to_thread(self._explain, pod.pod, kubeconfig, config, registry)
            if self._browsing.page is waiting:
                self._open(rendered_page(title, lambda width: _with_standing(pod, render(width))))
                self._draw()

        self._asking = asyncio.create_task(ask())

    def _open(self, page: Page) -> None:
        self._browsing = self._browsing._replace(page=page, top=0)

    @contextmanager
    def _everything_is_a_message(self) -> Iterator[None]:
        """What goes to standard output, standard error and the log would tear the picture."""
        loggers = (LOG, logging.getLogger())
        handlers = [list(logger.handlers) for logger in loggers]
        streams = sys.stdout, sys.stderr
        formatter = LOG.handlers[0].formatter if LOG.handlers else None
        for logger in loggers:
            logger.handlers[:] = [MessageLog(self._messages, formatter)]
        sys.stdout, sys.stderr = (cast(TextIO, PrintedLines(self._messages, stream)) for stream in streams)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams
            for logger, before in zip(loggers, handlers, strict=True):
                logger.handlers[:] = before


def _with_standing(pod: PodDecision, explanation: str) -> str:
    """The explanation; what was decided goes before it, unless it says the same."""
    return explanation if pod.why and printable(pod.why) in explanation else f"{_standing(pod)}\n\n{explanation}"


def _standing(pod: PodDecision) -> str:
    """What was decided on the pod, in full."""
    return printable(f"placed on {pod.node}" if pod.node else f"{pod.verdict.value}: {pod.why or 'no reason yet'}")


def help_page(service: ServedAt) -> Page:
    def render(width: int) -> str:
        indented = " " * min(_WIDTH, width // 3)
        keys = [fill(f"{key:<{_WIDTH}}{what}", width, subsequent_indent=indented) for key, what in KEYS.items()]
        return printable_lines("\n".join((*keys, "", *_PARTS, "", *_access(service))))

    return rendered_page("keys of the live view", render)


def _access(service: ServedAt) -> tuple[str, ...]:
    return (
        "In another terminal:",
        f"  export KUBECONFIG={service.kubeconfig}",
        "  kubectl get pods -A -o wide",
        "  podium explain NAMESPACE/POD",
    )

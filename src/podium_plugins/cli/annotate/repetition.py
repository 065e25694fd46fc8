"""Reads how often annotations are written, and runs the writing with a client."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.console import echo
from podium.cli.errors import InputError

if TYPE_CHECKING:
    import asyncio

    from podium.client import Client
    from podium.config.durations import Duration
    from podium_plugins.annotate.loop import Pace

OnceOption = Annotated[bool, typer.Option("--once", help="Do it once and end, with 1 if something went wrong.")]
IntervalOption = Annotated[
    str, typer.Option("--interval", metavar="DURATION", envvar="ANNOTATE_FREQ", help="How often; seconds or 90s, 5m.")
]
MaxAgeOption = Annotated[
    str, typer.Option("--max-age", metavar="DURATION", help="Annotations not measured for so long are taken away.")
]


def pace(once: bool, interval: str, max_age: str, tolerance: float) -> "Pace":
    from podium_plugins.annotate.loop import Pace

    every, oldest = duration("--interval", interval), duration("--max-age", max_age)
    if not once and oldest < 2 * every:
        raise InputError(
            f"--max-age {max_age} must be at least twice --interval {interval}, or annotations come and go"
        )
    return Pace(None if once else every.seconds, oldest.seconds, tolerance, echo, lambda line: echo(line, err=True))


def duration(option: str, text: str) -> "Duration":
    from podium.config.durations import Duration

    try:
        length = Duration.parse(f"{text}s" if text.isdecimal() else text)
    except ValueError:
        length = Duration(0)
    if length <= 0:
        raise InputError(f'{option} "{text}": write a length of time, such as 90s or 5m')
    return length


def run_with_client(
    work: "Callable[[Client, asyncio.Event], Coroutine[Any, Any, int]]", kubeconfig: str | None, context: str | None
) -> int:
    import asyncio

    from podium.client import Client, load_access
    from podium.serving.environment import stop_on_signals

    access = load_access(kubeconfig, context=context)

    async def main() -> int:
        async with Client(access, user_agent="podium-annotate") as client:
            return await work(client, stop_on_signals())

    return asyncio.run(main())

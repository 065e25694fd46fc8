"""`python -m podium.apiserver`: the embedded API alone, without nodes, controllers or a scheduler; tests use it."""

import argparse
import asyncio
import random
import signal

import uvloop

from podium.apiserver.api import Api
from podium.apiserver.serving import PortInUseError, Server
from podium.framework.clock import SystemClock


async def serve(port: int, seed: int | None) -> None:
    rng = random.Random(seed)
    api = Api(clock=SystemClock(), rng=rng)
    server = Server(api, port=port, rng=rng)
    await server.start()
    print(f"serving on {server.url}", flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m podium.apiserver", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="where to listen on 127.0.0.1; 0 takes any free port")
    parser.add_argument("--seed", type=int, help="of the random numbers that uids and names are made from")
    arguments = parser.parse_args()
    try:
        uvloop.run(serve(arguments.port, arguments.seed))
    except PortInUseError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()

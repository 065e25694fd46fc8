"""Serves the embedded API alone (`python -m podium_cluster.apiserver`), without nodes, controllers or a scheduler."""

import argparse
import asyncio
import random
import signal
from pathlib import Path

import uvloop

from podium.framework.clock import SystemClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StorageError
from podium_cluster.apiserver.http.server import ApiServer, PortInUseError
from podium_cluster.apiserver.store.database import Database, DatabaseError


async def serve(port: int, seed: int | None, database: Database | None) -> None:
    rng = random.Random(seed)
    api = EmbeddedApi(clock=SystemClock(), rng=rng, database=database)
    server = ApiServer(api, port=port, rng=rng)
    await server.start()
    print(f"serving on {server.url}", flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    await server.stop()
    if database is not None:
        database.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m podium_cluster.apiserver", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="where to listen on 127.0.0.1; 0 takes any free port")
    parser.add_argument("--seed", type=int, help="of the random numbers that uids and names are made from")
    parser.add_argument("--data", type=Path, help="a file to keep everything in; without it, it is lost at the end")
    arguments = parser.parse_args()
    try:
        database = None if arguments.data is None else Database(arguments.data)
        uvloop.run(serve(arguments.port, arguments.seed, database))
    except StorageError as error:
        raise SystemExit(error.sentence) from None
    except (PortInUseError, DatabaseError) as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()

"""Serves the embedded API with its controllers, and with nodes if asked for.

python -m tests.podium_cluster.apiserver.with_controllers
"""

import argparse
import asyncio
import random
import signal
from contextlib import AsyncExitStack

from podium.framework.clock import SystemClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.server import ApiServer
from podium_cluster.controllers import Controllers
from podium_cluster.kubelets import Kubelets, NodeShape


async def serve(port: int, nodes: int) -> None:
    clock, rng = SystemClock(), random.Random()
    api = EmbeddedApi(clock=clock, rng=rng)
    server = ApiServer(api, port=port, rng=rng)
    await server.start()
    async with AsyncExitStack() as stack:
        kubelets = Kubelets(api, clock, rng)
        await stack.enter_async_context(Controllers(api, clock, heartbeats=kubelets))
        if nodes:
            await stack.enter_async_context(kubelets)
            kubelets.add_nodes([NodeShape(count=nodes)])
        print(f"serving on {server.url}", flush=True)
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await ended.wait()
    await server.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=0)
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.port, arguments.nodes))

"""Injects faults that come at a moment of their own: servers that restart, processes that stop, nodes that fail.

Which of them come, and when, is drawn at the start; each ends by itself, at the latest when the time of faults does.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from podium_cluster.apiserver.api import EmbeddedApi
from tools.chaos.machines import Machines
from tools.chaos.network import Network
from tools.chaos.replicas import Replicas
from tools.chaos.request_faults import RequestFaults
from tools.chaos.transcript import Transcript
from tools.kit.virtual_time import VirtualProcess


class TimedFaults:
    """The faults of one scenario that are not bound to a request."""

    def __init__(
        self,
        rng: random.Random,
        *,
        api: EmbeddedApi,
        network: Network,
        request_faults: RequestFaults,
        machines: Machines,
        replicas: Replicas,
        transcript: Transcript,
    ) -> None:
        self._rng = rng
        self._api = api
        self._network = network
        self._request_faults = request_faults
        self._machines = machines
        self._replicas = replicas
        self._transcript = transcript
        self._kinds: dict[str, Callable[[], Awaitable[str | None]]] = {
            "API server restarted": self._restart,
            "history compacted": self._compact,
            "all connections cut": self._cut_all,
            "scheduler paused": self._pause,
            "scheduler killed": self._kill,
            "scheduler cut off": self._cut_off,
            "lease writes fail": self._fail_leases,
            "node vanishes": self._vanish,
            "node shrinks": self._shrink,
            "node takes no pods for a while": self._cordon,
        }

    async def run(self, seconds: float) -> None:
        """Inject faults for so many seconds."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        self._request_faults.active = True
        kinds = [kind for kind in self._kinds if self._rng.random() < 0.6]
        moments = sorted(self._rng.uniform(0, seconds) for _ in range(self._rng.randint(2, 10)))
        for moment in moments if kinds else []:
            await asyncio.sleep(max(0.0, start + moment - loop.time()))
            kind = self._rng.choice(kinds)
            details = await self._kinds[kind]()
            if details is not None:
                self._request_faults.injected[kind] += 1
                self._transcript.note("fault", f"{kind} {details}".rstrip())
        await asyncio.sleep(max(0.0, start + seconds - loop.time()))
        self._request_faults.active = False
        self._request_faults.without_lease.clear()
        self._network.down = False
        self._network.cut_off.clear()

    # The server

    async def _restart(self) -> str:
        away = self._rng.choice([0.1, 1.0, 5.0, 15.0]) * self._rng.random()
        self._network.down = True
        for link in self._network.links():
            link.cut()
        self._api.store.forget()
        asyncio.get_running_loop().call_later(away, setattr, self._network, "down", False)
        return f"and away for {away:.1f} s"

    async def _compact(self) -> str:
        self._api.store.forget()
        return ""

    async def _cut_all(self) -> str:
        for link in self._network.links():
            link.cut()
        return ""

    # The schedulers

    async def _pause(self) -> str | None:
        process = self._any_process()
        if process is None:
            return None
        seconds = self._rng.choice([2.0, 12.0, 20.0, 40.0]) * self._rng.random()
        process.pause(seconds)
        return f"for {seconds:.1f} s: {process.name}"

    async def _kill(self) -> str | None:
        process = self._any_process()
        if process is None:
            return None
        await self._replicas.kill(process)
        return f": {process.name}"

    async def _cut_off(self) -> str | None:
        process = self._any_process()
        if process is None:
            return None
        seconds = self._rng.choice([3.0, 12.0, 40.0]) * self._rng.random()
        self._network.cut_off[process] = None
        for link in self._network.links(process):
            link.silent = True
        asyncio.get_running_loop().call_later(seconds, self._network.cut_off.pop, process, None)
        return f"for {seconds:.1f} s: {process.name}"

    async def _fail_leases(self) -> str | None:
        process = self._any_process()
        if process is None:
            return None
        seconds = self._rng.uniform(5, 40)
        self._request_faults.without_lease[process] = None
        asyncio.get_running_loop().call_later(seconds, self._request_faults.without_lease.pop, process, None)
        return f"for {seconds:.1f} s: {process.name}"

    def _any_process(self) -> VirtualProcess | None:
        alive = self._replicas.alive()
        return self._rng.choice(alive) if alive else None

    # The nodes

    async def _vanish(self) -> str | None:
        return self._machines.vanish(None if self._rng.random() < 0.3 else self._rng.uniform(0.1, 20))

    async def _shrink(self) -> str | None:
        return self._machines.shrink()

    async def _cordon(self) -> str | None:
        return self._machines.cordon(self._rng.uniform(1, 30))

"""A process that leads, is stopped in its tracks, and writes the moment it goes on: run by the election tests.

python -m tests.podium.serving.holder KUBECONFIG LEASE.
It stops itself, so that the write is the very next thing it does.
"""

import asyncio
import os
import random
import signal
import sys

import uvloop

from podium.client import Client, load_access
from podium.framework import SystemClock
from podium.serving.election import Election, ElectionSettings, LeadershipLost, NotLeading


async def main(kubeconfig: str, lease: str) -> None:
    access = load_access(kubeconfig)
    async with Client(access) as client, Client(access) as guarded:
        election = Election(
            client,
            ElectionSettings(
                namespace="kube-system",
                name=lease,
                identity="holder",
                lease_duration=3.0,
                renew_deadline=2.5,
                retry_period=0.2,
            ),
            clock=SystemClock(),
            rng=random.Random(1),
            report=print,
        )
        guarded.guard = election.guard
        await election.acquire()
        keeping = asyncio.create_task(election.keep())
        await asyncio.sleep(0.5)
        await write(guarded, "before")
        print("stops", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        await write(guarded, "after")
        try:
            await keeping
        except LeadershipLost as lost:
            print(f"lost: {lost}", flush=True)


async def write(client: Client, name: str) -> None:
    try:
        await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"written-{name}"}})
        print(f"sent {name}", flush=True)
    except NotLeading as refused:
        print(f"refused {name}: {refused}", flush=True)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))

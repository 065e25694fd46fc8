"""Measures the dashboard in Chromium at a number of nodes: the budgets of the page, as a table.

    python -m tests.together.dashboard.budgets --nodes 20000
    python -m tests.together.dashboard.budgets --nodes 5000 --cost 10

A scheduler in memory decides while the page looks on; `--rate` pods a second come and go. With `--cost` it decides as
fast as it can, in turns without a dashboard and with one that a viewer reads, and says what that costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import threading
import time
from contextlib import AsyncExitStack
from typing import Any

from podium.run.dashboard import serve_dashboard
from podium.testing import node, pod
from tests.podium_dashboard.scheduler import SmallScheduler
from tests.together.dashboard.browser import chromium

ZONES = 5
WARM = 6.0
"""Seconds before something is measured."""

FRAMES = """
async (seconds) => {
  const canvas = document.querySelector('.map canvas');
  const box = canvas.getBoundingClientRect();
  const frames = [];
  const tasks = [];
  const noted = (list) => tasks.push(...list.getEntries().map((each) => each.duration));
  new PerformanceObserver(noted).observe({type: 'longtask'});
  const end = performance.now() + seconds * 1000;
  let last = performance.now();
  let turn = 0;
  while (performance.now() < end) {
    const at = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true, cancelable: true};
    canvas.dispatchEvent(new WheelEvent('wheel', {...at, deltaY: Math.floor(turn / 20) % 2 ? 60 : -60}));
    turn += 1;
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - last);
    last = performance.now();
  }
  frames.sort((a, b) => a - b);
  return {fps: 1000 * frames.length / frames.reduce((a, b) => a + b, 0), p95: frames[Math.floor(frames.length * 0.95)],
          longest: Math.max(0, ...tasks)};
}
"""


class Busy:
    """A scheduler to which pods come and from which they go, on a loop of its own."""

    def __init__(self, nodes: int, rate: int) -> None:
        self.scheduler = SmallScheduler()
        self.rate = rate
        self.tried = 0
        for number in range(nodes):
            zone = {"topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
            self.scheduler.add(node(f"node-{number}", cpu=32, memory="128Gi", labels=zone))
        self.scheduler.add(*(pod(f"first-{number}", cpu="500m", memory="1Gi") for number in range(100)))
        self.scheduler.schedule()
        self.port = 0
        self.ready = threading.Event()

    @property
    def decided(self) -> int:
        """Pods that were given a node."""
        return self.scheduler.history.bound

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            self.port = await serve_dashboard(self.scheduler.source("podium run"), 0, stack)
            self.ready.set()
            number, clock = 0, 0.0
            began = time.monotonic()
            while True:
                due = int((time.monotonic() - began) * self.rate)
                while self.tried < due and self.rate:
                    number += 1
                    self._one(number)
                    self.tried += 1
                    if self.tried % 20 == 0:
                        await asyncio.sleep(0)
                passed = time.monotonic() - began
                self.scheduler.clock.advance(passed - clock)
                clock = passed
                await asyncio.sleep(0.005)

    async def decide_for(self, seconds: float) -> None:
        """Decide as fast as can be; others have the loop after every 20 pods."""
        end = time.monotonic() + seconds
        began = time.monotonic()
        while time.monotonic() < end:
            for _ in range(20):
                self.tried += 1
                self._one(self.tried)
            self.scheduler.clock.advance(max(0.0, time.monotonic() - began))
            began = time.monotonic()
            await asyncio.sleep(0)

    def _one(self, number: int) -> None:
        engine = self.scheduler.engine
        self.scheduler.add(pod(f"pod-{number}", cpu="500m", memory="1Gi"))
        while engine.schedule_one() is not None:
            pass
        placed = engine.cluster.pods.get(f"default/pod-{number - 2000}")
        if placed is not None:
            engine.intake.delete(placed.pod)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rate", type=int, default=1000, help="decisions a second")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--cost", type=int, metavar="ROUNDS", default=0, help="how many turns of --seconds each")
    chosen = parser.parse_args()
    if chosen.cost:
        print(json.dumps(asyncio.run(_cost(Busy(chosen.nodes, 0), chosen.cost, chosen.seconds)), indent=2))
        return
    busy = Busy(chosen.nodes, chosen.rate)
    threading.Thread(target=busy.run, daemon=True).start()
    busy.ready.wait()
    print(json.dumps(_measured(busy, chosen.nodes, chosen.seconds), indent=2))


async def _cost(busy: Busy, rounds: int, seconds: float) -> dict[str, Any]:
    """What deciding costs without a dashboard and with one, in turns: medians, and the first by the second."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(2 * rounds):
        async with AsyncExitStack() as stack:
            watched = turn % 4 in (1, 2)
            if watched:
                port = await serve_dashboard(busy.scheduler.source("podium run"), 0, stack)
                stream = f"http://127.0.0.1:{port}/dashboard/api/v1/stream"
                viewer = await asyncio.create_subprocess_exec("curl", "-sN", "-o", "/dev/null", stream)
                stack.callback(viewer.kill)
            await busy.decide_for(WARM)  # until the viewer reads, and the cluster for its questions is built
            decided, cpu = busy.decided, time.process_time()
            await busy.decide_for(seconds)
            found[watched].append((busy.decided - decided) / (time.process_time() - cpu))
    alone, shown = statistics.median(found[False]), statistics.median(found[True])
    return {
        "rounds": rounds,
        "decisions a second of CPU, without a dashboard": round(alone),
        "with one and a viewer": round(shown),
        "ratio": round(shown / alone, 3),
    }


def _measured(busy: Busy, nodes: int, seconds: float) -> dict[str, Any]:
    address = f"http://127.0.0.1:{busy.port}/dashboard/"
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto("about:blank")
        began = time.monotonic()
        page.goto(address)
        while not page.evaluate("document.querySelector('.tile-value')?.innerText > ''"):
            page.wait_for_timeout(10)
        first = time.monotonic() - began
        page.goto(f"{address}#/map")
        page.wait_for_selector(".map canvas")
        page.wait_for_timeout(1500)
        decided, cpu = busy.decided, time.process_time()
        frames = page.evaluate(FRAMES, seconds)
        rate = (busy.decided - decided) / seconds
        cdp = page.context.new_cdp_session(page)
        cdp.send("HeapProfiler.collectGarbage")
        heap = cdp.send("Runtime.getHeapUsage")["usedSize"]
        name = next(iter(busy.scheduler.engine.cluster.pods.values())).pod.key
        began = time.monotonic()
        page.goto(f"{address}#/pods/{name}")
        while not page.evaluate("Boolean(document.querySelector('.waterfall'))"):
            page.wait_for_timeout(10)
        return {
            "nodes": nodes,
            "first paint of data, s": round(first, 2),
            "frames a second while zooming": round(frames["fps"], 1),
            "95 % of frames within, ms": round(frames["p95"], 1),
            "longest task, ms": round(frames["longest"], 1),
            "decisions a second meanwhile": round(rate),
            "process CPU meanwhile, share of a core": round((time.process_time() - cpu) / seconds, 2),
            "heap of the page, MB": round(heap / 1e6, 1),
            "pod page with waterfall, s": round(time.monotonic() - began, 2),
        }


if __name__ == "__main__":
    main()

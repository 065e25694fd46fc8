"""Stops `podium up` with SIGSTOP under load and continues it, over and over: nothing is lost, pods go on being placed.

python -m tests.podium_cluster.up.pauses --times 10 --seconds 60

Pods are created and deleted all the while. After each pause a new pod must get a node, every node must be ready, and at
the end every pod that the API acknowledged and that was not deleted must be there, under its uid and with a node.
"""

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.podium_cluster.up.up_process import PodiumUp

BETWEEN = 0.1
"""Seconds between two pods."""
ALIVE = 100
"""Pods of the load that are there at a time; older ones are deleted."""
PATIENCE = 30.0
"""Seconds within which a pod must have a node."""
PODS = "/api/v1/namespaces/default/pods"


def call(
    url: str, method: str = "GET", body: dict[str, Any] | None = None, content_type: str = "application/json"
) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": content_type}, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def pod(name: str) -> dict[str, Any]:
    requests = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": requests}]}}


class Load(threading.Thread):
    """Creates a pod every moment and deletes the oldest; `acknowledged`: uids by name of those that must be there."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._ended = threading.Event()
        self.created = 0
        self.acknowledged: dict[str, str] = {}
        self.failures: list[str] = []

    def run(self) -> None:
        while not self._ended.wait(BETWEEN):
            name = f"load-{self.created}"
            self.created += 1
            try:
                self.acknowledged[name] = call(self._url + PODS, "POST", pod(name))["metadata"]["uid"]
                if len(self.acknowledged) > ALIVE:
                    oldest = next(iter(self.acknowledged))
                    del self.acknowledged[oldest]
                    call(f"{self._url}{PODS}/{oldest}", "DELETE")
            except (OSError, urllib.error.HTTPError) as error:
                self.failures.append(f"{name}: {error}")

    def stop(self) -> None:
        self._ended.set()
        self.join(120)


def pause(up: PodiumUp, seconds: float) -> None:
    """Stop the process; a watch that was open before is closed by its client meanwhile."""
    watch = urllib.request.urlopen(f"{up.url}{PODS}?watch=1", timeout=120)
    up.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds / 2)
    watch.close()
    time.sleep(seconds / 2)
    up.process.send_signal(signal.SIGCONT)


def placed(up: PodiumUp, name: str) -> float:
    """Create a pod; the seconds until it has a node."""
    start = time.monotonic()
    call(up.url + PODS, "POST", pod(name))
    while not call(f"{up.url}{PODS}/{name}")["spec"].get("nodeName"):
        assert time.monotonic() - start < PATIENCE, f"{name} has no node after {PATIENCE:g} s:\n{up.output[-3000:]}"
        time.sleep(0.05)
    return time.monotonic() - start


def check_nodes(up: PodiumUp, count: int) -> None:
    nodes = call(f"{up.url}/api/v1/nodes")["items"]
    ready = [
        node["metadata"]["name"]
        for node in nodes
        if any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])
        and not node["spec"].get("taints")
    ]
    assert len(ready) == count, f"{len(ready)} of {count} nodes are ready and without taints"


def check_pods(up: PodiumUp, acknowledged: dict[str, str]) -> None:
    """Wait until all of them have a node; raises if one is gone or another."""
    end = time.monotonic() + PATIENCE
    while True:
        found = {each["metadata"]["name"]: each for each in call(up.url + PODS)["items"]}
        lost = {name for name, uid in acknowledged.items() if found.get(name, {}).get("metadata", {}).get("uid") != uid}
        assert not lost, f"lost: {sorted(lost)}"
        waiting = [name for name in acknowledged if not found[name]["spec"].get("nodeName")]
        if not waiting:
            return
        assert time.monotonic() < end, f"without a node: {waiting}"
        time.sleep(0.2)


def endure(up: PodiumUp, times: int, seconds: float, nodes: int) -> dict[str, Any]:
    """Pause so many times under load; what was seen."""
    load = Load(up.url)
    load.start()
    waits = []
    try:
        for number in range(times):
            time.sleep(3)
            pause(up, seconds)
            waits.append(round(placed(up, f"after-{number}"), 2))
            check_nodes(up, nodes)
    finally:
        load.stop()
    check_pods(up, load.acknowledged)
    assert load.failures == []
    assert up.process.poll() is None
    assert "Traceback" not in up.output, up.output
    return {"pauses": times, "seconds": seconds, "pods": load.created, "waits": waits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    nodes = 6
    arguments = ("--port", "0", "--nodes", str(nodes), "--workload", "none", "--speed", "50")
    with tempfile.TemporaryDirectory() as home, PodiumUp(*arguments, home=Path(home)) as up:
        seen = endure(up, options.times, options.seconds, nodes)
        code = up.stop()
        warnings = [line for line in up.output.splitlines() if not line.startswith(("placed ", "export ", "kubectl "))]
        print(json.dumps({**seen, "exit code": code, "printed": warnings}, indent=1))
    sys.exit(code)


if __name__ == "__main__":
    main()

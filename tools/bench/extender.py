"""Measures what extenders cost kube-scheduler: alone, with one that does nothing, and with Podium's agents, in one run.

Every contestant is a kube-scheduler that races as in `e2e`; the extenders run from the start to the end. Nodes carry
the annotations that the agents read. All kube-schedulers of a run have the same percentageOfNodesToScore: by default
kube-scheduler's own, 500 of 5,000 nodes. As many names go into each request, and what kube-scheduler pays for these is
most of what an extender costs.

    alone      no extender
    nothing    the extender of `nothing`, filter and prioritize: what the protocol itself costs
    agents     safe (filter, prioritize) and congestion (prioritize), an entry each
    joined     the same as one entry, /safe+congestion

`ratio` is agents : alone. The time of each call is taken from the extender's own histogram. Last, one request with all
nodes in full, as without nodeCacheCapable, is answered by an extender of its own.
"""

from __future__ import annotations

import http.client
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tools.bench.e2e import UNLIMITED, Figures, Race, RaceError, create_nodes, medians_of, ratio_of, run_races
from tools.bench.nothing import SERVING
from tools.bench.templates import NODE, POD
from tools.bench.usage import cpu_seconds, peak_bytes
from tools.testbed import Component, ComponentFailed, ControlPlane

ANSWERS = "podium extender answers"
HISTOGRAM = "podium_extender_request_duration_seconds"
FILLER = 30_000
"""Bytes of a node that is sent in full."""
WARM = 5
"""How often all nodes are sent in full."""

Say = Callable[[str, bool], None]


class CallTimes(msgspec.Struct, frozen=True):
    """How long one kind of call took, in milliseconds."""

    agent: str
    verb: str
    count: int
    p50_ms: float
    p99_ms: float


class InFull(msgspec.Struct, frozen=True):
    """All nodes in one request: seconds until the whole answer was there, first and then (median)."""

    nodes: int
    megabytes: float
    first_filter_s: float
    filter_s: float
    prioritize_s: float
    peak_mb: float


class ExtenderFigures(msgspec.Struct, frozen=True):
    alone: Figures
    nothing: Figures
    agents: Figures
    joined: Figures
    ratio: float
    """Pods/s with the agents, names only : alone."""
    joined_ratio: float
    nothing_ratio: float
    agents_cpu_s_per_1000: float
    """Processor time of the extender itself."""
    calls: list[CallTimes]
    in_full: InFull
    nodes: int
    pods: int
    percentage: int
    """percentageOfNodesToScore; 0: kube-scheduler's own choice."""
    rounds: list[Race]


def run_extender_bench(nodes: int, pods: int, rounds: int, percentage: int, on_phase: Say) -> ExtenderFigures:
    on_phase("starting the API server", False)
    try:
        with ControlPlane(audit=True) as plane:
            create_nodes(plane, [annotated(index, nodes) for index in range(nodes)], on_phase)
            return compare(plane, nodes, pods, rounds, percentage, on_phase)
    except ComponentFailed as failed:
        raise RaceError(str(failed)) from None


def annotated(index: int, count: int, filler: int = 0) -> bytes:
    """A node with what the agents read; usage differs from node to node, and none is at risk."""
    node = msgspec.json.decode(NODE.text(index, count))
    node["metadata"]["annotations"] = {
        "mean-free-cpu": str(3000 + index % 900),
        "std-free-cpu": str(100 + index % 70),
        "mean-free-memory": str((20 << 30) + (index % 1000 << 20)),
        "std-free-memory": str(1 << 30),
        "congestion-factor": str(index % 60),
    }
    if filler:
        node["metadata"]["name"] = f"node-{index}"
        missing = filler - len(msgspec.json.encode(node))
        images = missing // (len(msgspec.json.encode(image(0))) + 1)
        node["status"]["images"] = [image(index % 20 + number) for number in range(images)]
    return msgspec.json.encode(node)


def image(number: int) -> dict[str, Any]:
    """One of the images on a node, which are most of what a node says of itself."""
    name = f"registry.example.com/team-{number % 7}/service-{number:04}"
    return {"names": [f"{name}@sha256:{number:064x}", f"{name}:v1.{number % 30:02}"], "sizeBytes": 100_000_000 + number}


def compare(plane: ControlPlane, nodes: int, pods: int, rounds: int, percentage: int, on_phase: Say) -> ExtenderFigures:
    """The races on a control plane whose nodes are there already."""

    def start(*extenders: Mapping[str, Any]) -> Component:
        config = {**UNLIMITED, "percentageOfNodesToScore": percentage, "extenders": list(extenders)}
        return plane.start_scheduler(config, verbosity=0)

    on_phase("starting the extenders", False)
    first, second = free_ports(2)
    nothing = plane.start_program("nothing", [sys.executable, "-m", "tools.bench.nothing", str(first)], ready=SERVING)
    podium = start_podium(plane, second)
    starts: Mapping[str, Callable[[], Component]] = {
        "alone": start,
        "nothing": lambda: start(entry(first, "nothing", "filter", "prioritize")),
        "agents": lambda: start(
            entry(second, "safe", "filter", "prioritize"), entry(second, "congestion", "prioritize")
        ),
        "joined": lambda: start(entry(second, "safe+congestion", "filter", "prioritize")),
    }
    before = cpu_seconds(podium.pid)
    races = run_races(plane, starts, pods, rounds, on_phase)
    spent = cpu_seconds(podium.pid) - before
    calls = calls_of(scrape(second))
    for each in (nothing, podium):
        each.stop()
    figures = {name: medians_of(races, name) for name in starts}
    alone = figures["alone"].pods_per_s
    return ExtenderFigures(
        **figures,
        ratio=ratio_of(figures["agents"].pods_per_s, alone),
        joined_ratio=ratio_of(figures["joined"].pods_per_s, alone),
        nothing_ratio=ratio_of(figures["nothing"].pods_per_s, alone),
        agents_cpu_s_per_1000=round(spent / (2 * pods * rounds) * 1000, 3),
        calls=calls,
        in_full=send_in_full(plane, nodes, on_phase),
        nodes=nodes,
        pods=pods,
        percentage=percentage,
        rounds=races,
    )


def start_podium(plane: ControlPlane, port: int, *flags: str) -> Component:
    command = [sys.executable, "-m", "podium", "extender", "--agents", "safe,congestion", "--port", str(port)]
    where = flags or ("--kubeconfig", str(plane.kubeconfig_path))
    return plane.start_program("podium-extender", [*command, *where], ready=ANSWERS)


def entry(port: int, agent: str, *verbs: str) -> dict[str, Any]:
    found: dict[str, Any] = {"urlPrefix": f"http://127.0.0.1:{port}/{agent}", "nodeCacheCapable": True, "weight": 1}
    return found | {f"{verb}Verb": verb for verb in verbs}


def free_ports(count: int) -> list[int]:
    import socket

    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


# The time of calls


def scrape(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def calls_of(text: str) -> list[CallTimes]:
    """Percentiles of the extender's histogram: within a bucket, calls are taken to be spread evenly."""
    from prometheus_client.parser import text_string_to_metric_families

    buckets: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for metric in text_string_to_metric_families(text):
        for sample in metric.samples if metric.name == HISTOGRAM else ():
            if sample.name.endswith("_bucket"):
                labels = sample.labels
                key = (labels["agent"], labels["verb"])
                buckets.setdefault(key, []).append((float(labels["le"]), sample.value))
    return [
        CallTimes(agent, verb, int(found[-1][1]), *(round(1000 * percentile(found, share), 3) for share in (0.5, 0.99)))
        for (agent, verb), found in buckets.items()
    ]


def percentile(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """(upper bound, calls up to it), ascending → the time within which this share of calls was answered.

    >>> percentile([(1.0, 50), (2.0, 100), (float("inf"), 100)], 0.75)
    1.5
    """
    wanted = share * buckets[-1][1]
    low, below = 0.0, 0.0
    for bound, count in buckets:
        if count >= wanted and count > below:
            return low if bound == float("inf") else low + (bound - low) * (wanted - below) / (count - below)
        low, below = bound, count
    return low


# All nodes in full


def send_in_full(plane: ControlPlane, nodes: int, on_phase: Say) -> InFull:
    on_phase(f"sending {nodes:,} nodes in full", False)
    [port] = free_ports(1)
    podium = start_podium(plane, port, "--no-watch")
    items = b",".join(annotated(index, nodes, FILLER) for index in range(nodes))
    pod = POD.text(0, 1, "default")
    body = b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod, items)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    filters = [_timed(connection, "/safe/filter", body) for _ in range(WARM)]
    scores = [_timed(connection, "/safe/prioritize", body) for _ in range(WARM)]
    connection.close()
    found = InFull(
        nodes=nodes,
        megabytes=round(len(body) / 1e6, 1),
        first_filter_s=round(filters[0], 3),
        filter_s=round(sorted(filters[1:])[len(filters) // 2 - 1], 3),
        prioritize_s=round(sorted(scores)[len(scores) // 2], 3),
        peak_mb=round(peak_bytes(podium.pid) / 2**20, 1),
    )
    podium.stop()
    return found


def _timed(connection: http.client.HTTPConnection, path: str, body: bytes) -> float:
    began = time.perf_counter()
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    if response.status != 200 or (b'"Error":""' not in answer[-2000:] and not answer.startswith(b"[")):
        raise RaceError(f"{path} answered {response.status}: {answer[:300]!r}")
    return time.perf_counter() - began

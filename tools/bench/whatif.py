"""Measures how long the questions of `podium whatif` and `podium capacity` take on a large cluster, after it is read.

Every question is asked of the same cluster, a dump of JSON that is generated and read as a user's is. Each pod has its
app as a label, a twentieth of the apps spread over zones, and nodes differ in size.
"""

from __future__ import annotations

import gc
import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from podium.cli.state_source import RARELY
from podium.config import default_config
from podium.kube.admission import as_admitted
from podium.plugins import load_registry
from podium.whatif.capacity import Template, capacity
from podium.whatif.catalog import read_catalog
from podium.whatif.changes import Drain
from podium.whatif.compare import RUNNING, compare
from podium.whatif.drain import DrainRules
from podium.whatif.fit import fit
from podium.whatif.manifests import Given
from podium.whatif.offers import PurchaseRules
from podium.whatif.purchase import purchase
from podium.whatif.sandbox import Sandbox
from podium.whatif.sources import read_state
from tools.bench.templates import HOSTNAME, ZONE
from tools.kit.builders import make_pod

ZONES: Final = ("a", "b", "c")
APPS: Final = 500
DRAINED: Final = 50
BOUGHT: Final = 1000
SIGNATURES: Final = 20
TYPES: Final = 200
SECONDS: Final = 9.0
"""For which cheaper nodes are looked for."""


class QuestionCost(msgspec.Struct, frozen=True):
    """What one question took."""

    question: str
    seconds: float
    cpu_s: float
    budget_s: float | None
    """What it may take on 5,000 nodes with 50,000 pods, on a quiet machine."""
    answer: str


def dump(nodes: int, pods: int) -> bytes:
    """A cluster as `kubectl get -o json` prints it, with nodes of two sizes and pods of many apps."""
    rng = random.Random(1)
    items = [_node(number) for number in range(nodes)]
    items += [_pod(number, f"node-{number % nodes}", rng) for number in range(pods)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def measure_questions(nodes: int, pods: int, replicas: int, tell: Callable[[str], None]) -> list[QuestionCost]:
    """Read the dump, then ask each question of it."""
    costs: list[QuestionCost] = []

    @contextmanager
    def measured(question: str, budget: float | None) -> Iterator[list[str]]:
        tell(question)
        answer: list[str] = []
        began, cpu = time.perf_counter(), time.process_time()
        yield answer
        seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
        costs.append(QuestionCost(question, round(seconds, 3), round(cpu_s, 3), budget, answer[0]))

    gc.set_threshold(*RARELY)
    data = dump(nodes, pods)
    with measured(f"reading {len(data) / 1e6:.0f} MB", round(15.0 * len(data) / 300e6, 2)) as answer:
        known = read_state([(data, "dump.json")])
        answer.append(f"{len(known.objects)} objects")
    registry = load_registry()
    config = default_config(registry)
    sandbox, other = (Sandbox(as_admitted(known.objects), config, registry) for _ in range(2))
    asked = make_pod("asked", requests={"cpu": "500m", "memory": "512Mi"}, labels={"app": "asked"})
    for what, budget in (("first pod", None), ("one pod", 0.2)):
        with measured(what, budget) as answer:
            answer.append(fit(sandbox, (), Given(pods=[asked])).pods[0].after.node or "nowhere")
    drained = ",".join(f"node-{number}" for number in range(min(DRAINED, nodes // 2)))
    with measured(f"drain of {drained.count(',') + 1} nodes", 2.0) as answer:
        found = fit(sandbox, [Drain(nodes=drained)], drain_rules=DrainRules(force=True)).drained
        answer.append(f"{len(found.pods) if found else 0} pods")
    with measured(f"capacity to {replicas:,} replicas", 5.0) as answer:
        answer.append(f"{capacity(sandbox, [Template(asked)], limit=replicas).replicas} fit")
    with measured(f"--running of {pods:,} pods", 60.0) as answer:
        answer.append(f"{len(compare(sandbox, other, RUNNING).pods)} compared")
    with measured(f"--unblock of {BOUGHT:,} pods, {TYPES} types × {len(ZONES)} zones", 10.0) as answer:
        bought = purchase(
            Sandbox([], config, registry), read_catalog([(catalog(), "c")]), wanted(), PurchaseRules(seconds=SECONDS)
        )
        answer.append(f"{len(bought.nodes)} nodes, {bought.price:.2f} an hour, gap {100 * bought.gap:.2f} %")
    return costs


def wanted() -> list[Any]:
    """The pods that wait for nodes: of few signatures."""
    rng = random.Random(7)
    shapes = [
        (rng.choice((250, 500, 1000, 2000, 3000)), rng.choice((512, 1024, 2048, 6144))) for _ in range(SIGNATURES)
    ]
    return [
        make_pod(
            f"w{number}", labels={"app": f"w{number % SIGNATURES}"}, requests={"cpu": f"{cpu}m", "memory": f"{mib}Mi"}
        )
        for number in range(BOUGHT)
        for cpu, mib in (shapes[number % SIGNATURES],)
    ]


def catalog() -> str:
    """Many types of nodes, whose prices go with their size but for a few percent."""
    rng = random.Random(3)
    types = []
    for number in range(TYPES):
        cpu, ratio = rng.choice((2, 4, 8, 16, 32, 64)), rng.choice((2, 4, 8))
        price = round((0.03 * cpu + 0.004 * cpu * ratio) * rng.uniform(0.9, 1.2), 4)
        allocatable = {"cpu": cpu, "memory": f"{cpu * ratio}Gi", "pods": 110}
        types.append({"name": f"t{number}", "price": price, "allocatable": allocatable, "zones": list(ZONES)})
    return json.dumps({"types": types})


def _node(number: int) -> dict[str, Any]:
    name, cpu = f"node-{number}", 16 if number % 3 else 32
    amounts = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {HOSTNAME: name, ZONE: ZONES[number % 3]}},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _pod(number: int, node: str, rng: random.Random) -> dict[str, Any]:
    app, amounts = f"app-{number % APPS}", {"cpu": rng.choice(("100m", "250m", "500m")), "memory": "256Mi"}
    spread = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
    metadata = {"name": f"{app}-{number}", "namespace": "default", "uid": f"pod-{number}", "labels": {"app": app}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [owner]},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "c", "image": "app", "resources": {"requests": amounts}}],
            **({} if number % APPS % 20 else {"topologySpreadConstraints": [spread]}),
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }

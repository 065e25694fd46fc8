"""The same pods, the same cluster and the same HTTP extenders, behind kube-scheduler and behind Podium.

A case is a pod that names its extenders by the resources they manage, and carries what each is to answer in an
annotation (`names.filter`, …). kube-scheduler decides it on the test bed; what it saw is then given to a Podium
scheduler. Compared are the node or the failure message, the totals of scores, who is evicted, and every request the
extenders got.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from podium.config import load_config
from podium.engine import scheduler as engine
from podium.engine.decide import Decision, decide
from podium.framework import ManualClock, Nomination
from podium.framework.handle import Driver, Preemptor
from podium.kube import KINDS, Pod, decode_json
from podium.plugins import load_registry
from podium.run.http_extender import build_extenders
from podium.testing.memory_writer import MemoryWriter
from tests.podium.run.extender_server import ExtenderServer, Misdeed, Reply, Seen, hang, hang_up, write
from tools.parity.scheduler_log import (
    BOUND_POD_DELETED,
    FLAGS,
    PENDING_POD_DELETED,
    POD_BOUND,
    VERBOSITY,
    Attempt,
    SchedulerLog,
)
from tools.testbed import ControlPlane
from tools.testbed.apiclient import ApiError

Obj = dict[str, Any]
Config = Callable[[str], Obj]
"""A KubeSchedulerConfiguration for extenders at a URL."""

MISDEEDS: Mapping[str, Callable[[Any], None]] = {
    "hang": hang,
    "hang up": hang_up,
    "no HTTP": write(b"hello\r\n\r\n"),
}


@dataclass
class Outcome:
    """What one scheduler made of a case."""

    node: str = ""
    message: str = ""
    totals: dict[str, int] = field(default_factory=dict)
    target: str = ""
    victims: list[str] = field(default_factory=list)
    requests: list[tuple[str, Any]] = field(default_factory=list)


def extender(url: str, name: str, **more: Any) -> Obj:
    managed = [{"name": f"example.com/{name}", "ignoredByScheduler": True}]
    return {"urlPrefix": f"{url}/{name}", "managedResources": managed, "httpTimeout": "500ms", **more}


def pod(name: str, extenders: Iterable[str], answers: Mapping[str, Any], **spec: Any) -> Obj:
    requests = {"cpu": "100m", **{f"example.com/{each}": "1" for each in extenders}, **spec.pop("requests", {})}
    limits = {resource: amount for resource, amount in requests.items() if "/" in resource}
    container = {"name": "c", "image": "app", "resources": {"requests": requests, "limits": limits}}
    annotations = {verb: json.dumps(answer) for verb, answer in answers.items()}
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


class Answering:
    """What the extenders answer: as the pod's annotation says.

    `keep` stands for the nodes (or victims) to be kept, in the form the request asks for; `status`, `text` and `do` are
    for answers that are none. Bindings are done by `bind`, if there is one.
    """

    def __init__(self, nodes: Mapping[str, Obj], bind: Callable[[str, str], None] | None) -> None:
        self._nodes = nodes
        self._bind = bind

    def __call__(self, path: str, body: Any) -> Any:
        name, verb = path.strip("/").split("/")
        if verb == "bind":
            return self._bound(body)
        answer = json.loads(body["Pod"]["metadata"].get("annotations", {}).get(f"{name}.{verb}", "{}"))
        if not isinstance(answer, dict):
            return answer
        if "do" in answer:
            return Misdeed(MISDEEDS[answer["do"]])
        if "status" in answer or "text" in answer:
            return Reply(answer.get("status", 200), answer.get("text", "").encode())
        keep = answer.pop("keep", None)
        if verb == "filter":
            return {**self._kept_nodes(body, keep, as_objects=answer.pop("whole", False)), **answer}
        if verb == "preempt":
            return {**_kept_victims(body, keep), **answer}
        return answer

    def _kept_nodes(self, body: Any, keep: list[str] | None, *, as_objects: bool) -> Obj:
        if body["NodeNames"] is not None:
            names = [name for name in body["NodeNames"] if keep is None or name in keep]
            return {"Nodes": {"items": [self._nodes[name] for name in names]}} if as_objects else {"NodeNames": names}
        items = [node for node in body["Nodes"]["items"] if keep is None or node["metadata"]["name"] in keep]
        return {"Nodes": {"items": items}}

    def _bound(self, body: Any) -> Any:
        if body["PodName"].startswith("unlucky"):
            return {"Error": "no luck"}
        if self._bind is not None:
            self._bind(body["PodName"], body["Node"])
        return {}


def _kept_victims(body: Any, keep: list[str] | None) -> Obj:
    victims = body["NodeNameToMetaVictims"]
    if victims is None:
        victims = {
            name: {**each, "Pods": [{"UID": pod["metadata"]["uid"]} for pod in each["Pods"]]}
            for name, each in body["NodeNameToVictims"].items()
        }
    return {"NodeNameToMetaVictims": {name: each for name, each in victims.items() if keep is None or name in keep}}


# kube-scheduler's side


class Duel:
    """One kube-scheduler with its extenders, and what to ask Podium with.

    Each side has a server of its own, which differ in their addresses only: what kube-scheduler still tries when its
    answer is known must not be taken for Podium's.
    """

    def __init__(
        self, plane: ControlPlane, servers: tuple[ExtenderServer, ExtenderServer], config: Config, nodes: Sequence[Obj]
    ) -> None:
        self._client = plane.client
        self._real_server, self._own_server = servers
        self._client.create_all(nodes)
        known = {each["metadata"]["name"]: each for each in self._client.list("v1/Node")}
        self._real_server.answers = {"": Answering(known, self._bind)}
        self._own_server.answers = {"": Answering(known, None)}
        self._config = config
        self._made = 0
        self._scheduler = plane.start_scheduler(config(self._real_server.url), verbosity=VERBOSITY, flags=FLAGS)
        self._log = SchedulerLog(self._scheduler.log_path)
        self._log.wait(lambda: len(self._log.nodes) == len(nodes), "see all nodes")

    def close(self) -> None:
        self._log.close()
        self._scheduler.stop(grace=0.0)

    def fight(self, case: Obj, others: Sequence[Obj] = ()) -> tuple[Outcome, Outcome]:
        """What kube-scheduler and Podium make of a pod, with these others on the nodes (and their budgets)."""
        made: list[Obj] = []
        try:
            for each in others:
                made.append(self._create(each))
                if each["kind"] == "Pod":
                    self._log.wait_seen(POD_BOUND, _key(made[-1]))
            before = [
                {"apiVersion": version, "kind": kind, **item}
                for version, kind in (("v1", "Node"), ("v1", "Pod"), ("policy/v1", "PodDisruptionBudget"))
                for item in self._client.list(f"{version}/{kind}")
            ]
            made.append(self._create(case))
            real = _outcome_of(self._decided(_key(made[-1])))
        finally:
            self._clear(reversed(made))
        ours = _podium(self._config(self._own_server.url), before, {"apiVersion": "v1", "kind": "Pod", **made[-1]})
        for outcome, server in ((real, self._real_server), (ours, self._own_server)):
            outcome.message = outcome.message.replace(server.url, "URL")
            outcome.requests = _normalised(server.seen, made[-1]["metadata"]["name"])
            server.seen.clear()
        return real, ours

    def _create(self, obj: Obj) -> Obj:
        """Names are never used twice, so that what the log says of one is about this object."""
        self._made += 1
        name = f"{obj['metadata']['name']}-{self._made}"
        return self._client.create({**obj, "metadata": {**obj["metadata"], "name": name}})

    def _bind(self, pod: str, node: str) -> None:
        self._client.bind(pod, node)

    def _decided(self, key: str) -> Attempt:
        self._log.wait(lambda: bool((found := self._log.latest(key)) and found.outcome), f"decide {key}")
        attempt = self._log.latest(key)
        assert attempt is not None
        self._log.wait(lambda: not attempt.evictions_pending, "evict")
        return attempt

    def _clear(self, objects: Iterable[Obj]) -> None:
        """Everything but the nodes goes, before the next case comes."""
        for each in objects:
            metadata = each["metadata"]
            try:
                self._client.delete(each["kind"], metadata["name"], metadata["namespace"])
            except ApiError as error:
                if error.code != 404:
                    raise
            if each["kind"] == "Pod":
                self._see_go(_key(each))

    def _see_go(self, key: str) -> None:
        events = [(event, key) for event in (PENDING_POD_DELETED, BOUND_POD_DELETED)]
        self._log.wait(lambda: any(self._log.seen[event] for event in events), f"see {key} go")


def _outcome_of(attempt: Attempt) -> Outcome:
    return Outcome(
        attempt.node if attempt.outcome == "bound" else "",
        attempt.message,
        attempt.totals,
        attempt.target,
        sorted(attempt.victims) if attempt.target else [],
    )


def _normalised(seen: list[Seen], pod: str) -> list[tuple[str, Any]]:
    """Requests without the order of nodes, which many threads of kube-scheduler decide, nor of concurrent requests.

    Only the first of each kind about the pod counts: one that failed may be tried again before it is taken away.
    """
    requests: dict[str, Any] = {}
    for each in seen:
        if pod != (each.body["PodName"] if "PodName" in each.body else each.body["Pod"]["metadata"]["name"]):
            continue
        assert each.method == "POST"
        assert each.headers["Content-Type"] == "application/json"
        body = each.body
        if isinstance(body.get("NodeNames"), list):
            body["NodeNames"].sort()
        if isinstance(body.get("Nodes"), dict):
            body["Nodes"]["items"].sort(key=lambda node: node["metadata"]["name"])
        requests.setdefault(each.path, body)
    return sorted(requests.items())


# Podium's side


class Podium(MemoryWriter):
    """A scheduler's surroundings: it remembers what is written and told."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome = Outcome()
        self.work: list[Coroutine[Any, Any, None]] = []

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self.outcome.target, self.outcome.victims = node_name, sorted(victim.key for victim in victims)

    def scheduled(self, pod: Pod, node_name: str) -> None:
        self.outcome.node = node_name

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        self.outcome.message = message


def _podium(config: Obj, objects: Iterable[Obj], case: Obj) -> Outcome:
    registry = load_registry()
    full = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **config}
    loaded = load_config(json.dumps(full), "config", registry).config
    known = [*objects, case]
    raw = {(each["kind"], _key(each).strip("/")): msgspec.json.encode(each) for each in known}
    extenders = build_extenders(loaded, lambda key: raw.get(("Pod", key)), lambda name: raw.get(("Node", name)))
    around = Podium()
    decisions: list[Decision] = []

    def remembering(*args: Any) -> Decision:
        decisions.append(decide(*args))
        return decisions[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "decide", remembering)
        scheduler = engine.Scheduler(
            loaded,
            registry,
            Driver(
                clock=ManualClock(time.time()),
                writer=around,
                rng=random.Random(0),
                launch=around.work.append,
                extenders=extenders,
            ),
            around,
            parity=True,
        )
        scheduler.load(
            decode_json(KINDS[each["apiVersion"], each["kind"]], msgspec.json.encode(each)) for each in known
        )
        assert scheduler.schedule_one() is not None

    async def main() -> None:
        for work in around.work:
            await work

    asyncio.run(main())
    for each in extenders:
        each.close()
    for decision in decisions:
        if decision.scores is not None:
            names = [scheduler.cluster.names[row] for row in decision.search.feasible.tolist()]
            around.outcome.totals = dict(zip(names, decision.scores.total.tolist(), strict=True))
    return around.outcome


def _key(obj: Obj) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"

"""Asks agents that speak Podium's own protocol: names, labels and numbers as JSON, one request for each decision.

    POST /v1/score     decisionId, policy, deadlineMs, pod {…},
                       nodes [{name, allocatable, requested, metrics, feasible}]
                       → decisionId, scores [{name, raw or score}]; all else in the answer is optional
    POST /v1/outcome   what became of a decision (`outcomes`)
    GET  /readyz       before the first question, and /v1/model, where the agent may name its feature schema

`raw` is any finite number, larger is better; `score` is a whole number from 0 to 100 and is taken as it is. Every
feasible node must appear once. A question that is asked again has the decisionId it had.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np

from podium.framework import MAX_SCORE
from podium_lab.model_score.channel import Channel, Exchange, ServerAccess
from podium_lab.model_score.open_inference import decoded
from podium_lab.model_score.question import ModelError, ModelNumbers, ModelQuestion, checked_numbers
from podium_lab.models.features import ClusterArrays
from podium_lab.models.schema import RESOURCES, SCHEMA_HASH
from podium_lab.models.scorer_file import SCHEMA_KEY, ScorerFileError, check_schema

JSON: Final = {"Content-Type": "application/json"}
BYTES_PER_NODE, BYTES_OTHERWISE = 512, 1 << 18
"""How large an answer may be; names of nodes have up to 253 characters."""
UNITS: Final = np.array([1000.0, 1.0, 1000.0, 1.0])
"""What the amounts are divided by: cores, bytes, GPUs, pods."""


class _Score(msgspec.Struct):
    name: str
    raw: float | None = None
    score: int | None = None


class _Scores(msgspec.Struct, rename="camel"):
    decision_id: str
    scores: list[_Score]


class _AboutModel(msgspec.Struct, rename="camel"):
    feature_schema: str = ""


class PodiumModel:
    """An agent behind a server; `objective` is what stands in for it, and is sent as `policy`."""

    def __init__(self, access: ServerAccess, objective: str, deadline: float) -> None:
        self.name = f"the agent at {access.url}"
        self._objective = objective
        self._deadline = round(1000 * deadline)
        self._channel = Channel(access, self._check)

    def prepare(self) -> None:
        self._channel.prepare()

    def close(self) -> None:
        self._channel.close()

    def ask(self, question: ModelQuestion, deadline: float) -> ModelNumbers:
        body = msgspec.json.encode(self._request(question))
        largest = BYTES_OTHERWISE + BYTES_PER_NODE * len(question.names)
        reply = self._channel.post("/v1/score", body, JSON, deadline, largest)
        found: _Scores = decoded(reply.body, _Scores, f"the answer of {self.name}")
        if found.decision_id != question.decision:
            raise ModelError("schema", f"{self.name} answered about another decision")
        by_name = {each.name: each for each in found.scores}
        if len(found.scores) != len(question.names) or any(name not in by_name for name in question.names):
            wrong = f"{self.name} scored {len(found.scores)} nodes, and was asked about {len(question.names)}"
            raise ModelError("schema", f"{wrong}; each must appear once")
        scores = [by_name[name] for name in question.names]
        return self._answer(scores)

    def _answer(self, scores: list[_Score]) -> ModelNumbers:
        raw = [each.raw for each in scores if each.raw is not None]
        if len(raw) == len(scores):
            return ModelNumbers(checked_numbers(np.array(raw, dtype=np.float64), len(scores), self.name))
        final = [each.score for each in scores if each.score is not None]
        if len(final) != len(scores):
            raise ModelError("schema", f"{self.name} must give raw for all nodes, or score for all")
        if not all(0 <= each <= MAX_SCORE for each in final):
            raise ModelError("schema", f"{self.name} gave a score outside 0 to {MAX_SCORE}")
        return ModelNumbers(np.array(final, dtype=np.float64), final=True)

    def _check(self, exchange: Exchange) -> None:
        exchange("GET", "/readyz")
        try:
            about: _AboutModel = decoded(exchange("GET", "/v1/model").body, _AboutModel, f"/v1/model of {self.name}")
        except ModelError:
            return  # an agent need not say anything about itself
        if about.feature_schema:
            try:
                check_schema({SCHEMA_KEY: about.feature_schema}, self.name)
            except ScorerFileError as error:
                raise ModelError("schema", str(error)) from None

    def _request(self, question: ModelQuestion) -> dict[str, Any]:
        situation, pod = question.situation, question.pod
        described: dict[str, Any] = {
            "namespace": pod.metadata.namespace,
            "name": pod.metadata.name,
            "uid": pod.uid,
            "labels": pod.metadata.labels,
            "requests": dict(zip(RESOURCES, (situation.pod.request / UNITS).tolist(), strict=True)),
            "priority": pod.priority,
        }
        for name, limit in (
            ("latencySoftMs", situation.pod.latency_soft),
            ("latencyHardMs", situation.pod.latency_hard),
        ):
            if not np.isnan(limit):
                described[name] = float(limit)
        return {
            "decisionId": question.decision,
            "policy": self._objective,
            "deadlineMs": self._deadline,
            "featureSchema": SCHEMA_HASH,
            "pod": described,
            "nodes": node_descriptions(question.names, situation.cluster),
        }


def node_descriptions(names: Any, cluster: ClusterArrays) -> list[dict[str, Any]]:
    """Nodes as plain data: cores, bytes, GPUs and pods; of the metrics those that are known."""
    offered, requested = (cluster.capacity / UNITS).tolist(), (cluster.requested / UNITS).tolist()
    used = cluster.used / UNITS
    metrics = {
        "cpuUsed": used[:, 0],
        "memoryUsed": used[:, 1],
        "gpuUsed": used[:, 2],
        "connections": cluster.connections,
        "trafficBytesPerSecond": cluster.traffic,
        "linkBytesPerSecond": cluster.link_speed,
        "latencyMs": cluster.latency,
        "ageSeconds": cluster.age,
    }
    known = {name: values.tolist() for name, values in metrics.items() if not np.isnan(values).all()}
    return [
        {
            "name": name,
            "allocatable": dict(zip(RESOURCES, offered[i], strict=True)),
            "requested": dict(zip(RESOURCES, requested[i], strict=True)),
            "metrics": {metric: values[i] for metric, values in known.items() if values[i] == values[i]},
            "feasible": True,
        }
        for i, name in enumerate(names)
    ]

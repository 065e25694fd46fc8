"""Peaks: puts pods where they add least to the power that nodes draw.

A node draws k0 + k1·e^(k2·x) watts at x percent of its cpu. With the measured utilisation U and X with the pod,

    raw = 10¹⁵·k1·(e^(k2·X) − e^(k2·U)), toward zero
    score = 100 − 100·(raw − lowest)/(highest − lowest), the share toward zero

All 100 where every node adds the same; all 0 where none adds anything.

In the original, nodes that are not measured, have no power model or would be overloaded (X > 100) add 0 and become the
best. Here they score 0 and are left out of lowest and highest, unless `unknownNodes: Best` asks for the original. Jumps
above 4,600 W are cut instead of overflowing. The arguments are written in small letters as everywhere else; the
original's `WatcherAddress` and `NodePowerModel` are understood. A model in the file that NODE_POWER_MODEL names counts
whenever the arguments have none.
"""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np

from podium import MAX_SCORE, Cycle, DependsOn, FieldError, FieldPath, Handle, NodePart, Plugin, Scores
from podium.cluster import Cluster, Nodes
from podium.kube import SETTINGS, DocumentError, Pod, milli, pod_requests, read_json
from podium.load import Floats, GenerationCounter, Utilisation, address_errors, cpu_capacity, no_such_provider, watcher

NAME = "Peaks"
MODEL_FILE: Final = "NODE_POWER_MODEL"
_SCALE: Final = 1e15
_MOST: Final = float(2**62 - 512)  # differences of two fit into 64 bits
_UNKNOWN: Final = -(2**63)
"""The raw score of a node whose power is not known."""


class PowerModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    k0: float = 0.0
    k1: float = 0.0
    k2: float = 0.0


class PeaksArgs(msgspec.Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    watcher_address: str = ""
    node_power_model: dict[str, PowerModel] = msgspec.field(default_factory=dict)
    unknown_nodes: Literal["Worst", "Best"] = "Worst"
    original_watcher_address: str = msgspec.field(default="", name="WatcherAddress")
    original_node_power_model: dict[str, PowerModel] = msgspec.field(default_factory=dict, name="NodePowerModel")

    @property
    def address(self) -> str:
        return self.watcher_address or self.original_watcher_address

    @property
    def model(self) -> dict[str, PowerModel]:
        return self.node_power_model or self.original_node_power_model

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if not self.address:
            yield no_such_provider(path.child("watcherAddress"), "")
        else:
            yield from address_errors(path.child("watcherAddress"), watcher(self.address))
        if self.watcher_address and self.original_watcher_address:
            yield FieldError.forbidden(path.child("WatcherAddress"), "watcherAddress is given already, and is the same")
        if self.node_power_model and self.original_node_power_model:
            yield FieldError.forbidden(path.child("NodePowerModel"), "nodePowerModel is given already, and is the same")
        for name, model in self.model.items():
            if not all(math.isfinite(number) for number in (model.k0, model.k1, model.k2)):
                yield FieldError.invalid(path.child("nodePowerModel", name), name, "its numbers must be finite")


class Peaks(Plugin):
    name = NAME
    trusted = True
    Args = PeaksArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    args: PeaksArgs

    def __init__(self, args: PeaksArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        if not args.address:
            raise ValueError("; ".join(str(error) for error in args.validate(FieldPath())))
        self._generation = GenerationCounter()
        self._cpu = Utilisation(handle, watcher(args.address), "CPU", self._generation)
        self._capacity = cpu_capacity()
        self._models = args.model or read_models(os.environ)
        self._coefficients: tuple[int, Cluster, Floats] | None = None

    def answer_key(self, _pod: Pod) -> Hashable:
        return self._generation.count

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        cluster = nodes.cluster
        used = nodes.pick(self._cpu.mean(cluster))
        capacity = nodes.pick(self._capacity.over_rows(cluster)[0]).astype(np.float64)
        k1, k2 = nodes.pick(self._coefficients_of(cluster))
        some = capacity > 0
        request = float(_cpu_request(cycle.pod))
        load = np.where(some, 100 * (used / 100 * capacity + request) / np.where(some, capacity, 1.0), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            raw = np.trunc(_SCALE * k1 * (np.exp(k2 * load) - np.exp(k2 * used)))
        unknown = np.isnan(raw) | (load > 100)
        scores: Scores = np.clip(np.where(unknown, 0.0, raw), -_MOST, _MOST).astype(np.int64)
        if self.args.unknown_nodes == "Worst":
            scores[unknown] = _UNKNOWN
        return scores

    def normalize(self, _cycle: Cycle, _nodes: Nodes, scores: Scores) -> Scores:
        known = scores != _UNKNOWN
        answer = np.zeros_like(scores)
        if not known.any():
            return answer
        lowest, highest = int(scores[known].min()), int(scores[known].max())
        if lowest == highest == 0:
            return answer
        if lowest == highest:
            answer[known] = MAX_SCORE
            return answer
        shares = MAX_SCORE * (scores[known] - lowest).astype(np.float64) / float(highest - lowest)
        answer[known] = MAX_SCORE - shares.astype(np.int64)
        return answer

    def _coefficients_of(self, cluster: Cluster) -> Floats:
        """float64[2, rows]: k1 and k2 of each node's model; where there is none NaN, or zeros as in the original."""
        now = cluster.node_changes.version
        known = self._coefficients
        if known is None or known[0] != now or known[1] is not cluster:
            none = math.nan if self.args.unknown_nodes == "Worst" else 0.0
            missing, models = PowerModel(k1=none, k2=none), self._models
            rows = [models.get(name, missing) for name in cluster.names]
            table = np.array([[each.k1 for each in rows], [each.k2 for each in rows]], dtype=np.float64)
            known = self._coefficients = now, cluster, table
        return known[2]


def _cpu_request(pod: Pod) -> int:
    """In thousandths. Overhead alone is no request."""
    request, overhead = pod_requests(pod).get("cpu", 0), milli(pod.spec.overhead.get("cpu", 0))
    return 0 if request == overhead else request


def read_models(environment: Mapping[str, str]) -> dict[str, PowerModel]:
    """The models of the file that the environment names; none where it names none."""
    path = environment.get(MODEL_FILE)
    if not path:
        return {}
    try:
        return msgspec.convert(read_json(Path(path).read_bytes(), bounds=SETTINGS), type=dict[str, PowerModel])
    except OSError as error:
        raise ValueError(f"{MODEL_FILE} names {path}, which cannot be read: {error.strerror}") from None
    except (msgspec.ValidationError, DocumentError) as error:
        form = '{"node": {"k0": …, "k1": …, "k2": …}}'
        raise ValueError(f"{MODEL_FILE} names {path}, which is not of the form {form}: {error}") from None

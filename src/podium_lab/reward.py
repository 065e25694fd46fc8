"""Prefers nodes on which pods of the same type have fared well (RewardBias).

    points = ⌊10·reward⌋ of the pod's type on the node; score = 10·points

The type is the pod's label `podtype`, `app` or `name`, or else its name. Rewards are learnt from
what the states of all pods teach, whichever scheduler placed them. They are kept in a ConfigMap
(`namespace`, `configMap`; REWARD_NAMESPACE, REWARD_CONFIG_MAP), so they outlive the process. Where nothing is known all
nodes get 10 points.

A reward v says how well pods of a type fare on a node, and is learnt lesson by lesson r:

    v ← (1 − η)·v + η·r

from 1 on, so that no node is avoided without a reason. The same is kept for each node over all types, and for
each type over all nodes, for people to look at. What is kept is text with six decimals, one line for each node:

    web: |
      node-a 0.950000 12 2026-01-31T12:00:00Z

A reward that reads 1.000000 is not kept: it is what an unknown one is. Behind it stand the number of lessons and the
time of the last. They serve to bring two replicas together, which watch the same pods: of two rewards that differ, the
one that has seen more lessons is right. Lines of which nothing was heard for long are dropped. Where not all fit into a
ConfigMap, the lowest rewards are kept.

A pod's present state teaches a reward from 0 to 1 about its node, or nothing:

    phase Failed, Unknown                0
    phase Running                        by its containers, in order, beginning with 1:
        runs, and has not ended before       changes nothing
        has ended for the first time         ½
        has ended once more                  ½ if this run was a lasting one, else 0
        waits, or runs after it had ended    nothing is learnt, unless a later one has ended
    any other phase                      nothing

So a healthy pod speaks for its node, a crash against it, and what comes of the restart says neither. A container that
ended with exit code 0 has done its work: it changes nothing. How long a run lasted is from when it started to when it
finished.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping

import msgspec
import numpy as np

from podium.cluster import NodeInfo, Nodes
from podium.config.durations import SECOND, Duration
from podium.config.field import FieldError, FieldPath
from podium.framework import Cycle, DependsOn, Handle, NodePart, Plugin, PluginError, Scores
from podium.framework.environment import filled
from podium.framework.pod_outcomes import ConfigMapName, Ended, LearnedState, PodOutcome, learn
from podium.framework.row_numbers import read_decimal, read_whole
from podium.kube import Pod
from podium.kube.meta import format_time, parse_time

NAME = "RewardBias"
POINTS = 10
"""Points go from 0 to 10; each counts 10 in a score."""


NAMESPACE, CONFIG_MAP = "kube-system", "podium-rewards"
VARIABLES = {"namespace": "REWARD_NAMESPACE", "config_map": "REWARD_CONFIG_MAP"}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class RewardBiasArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Where rewards are kept, and what is learnt from; variables stand in for what is left open."""

    namespace: str | None = None
    config_map: str | None = None
    """The ConfigMap, and its namespace, in which rewards outlive the process."""
    learning_rate: float = 0.1
    """How much one lesson counts against all before it."""
    lasting_run: Duration = Duration(600 * SECOND)
    """A container that crashes again, but ran longer than this, is half as bad."""
    forget_after: Duration = Duration(30 * 86400 * SECOND)
    """Rewards of which nothing was heard for so long are dropped."""
    compat: bool = False
    """What is not known scores 0, and a node that joins late begins at 0, as in the original."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        for name, given in (("namespace", self.namespace), ("configMap", self.config_map)):
            if given is not None and not _NAME.fullmatch(given):
                yield FieldError.invalid(path.child(name), given, "must be a name as Kubernetes has them")
        if not 0 < self.learning_rate <= 1:
            at = path.child("learningRate")
            yield FieldError.invalid(at, self.learning_rate, "must be greater than 0 and at most 1")
        for name, length in (("lastingRun", self.lasting_run), ("forgetAfter", self.forget_after)):
            if length <= 0:
                yield FieldError.invalid(path.child(name), length, "must be greater than zero")


class RewardBias(Plugin):
    name = NAME
    trusted = True
    Args = RewardBiasArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    learned_state = LearnedState(ConfigMapName(NAMESPACE, CONFIG_MAP), VARIABLES["config_map"], VARIABLES["namespace"])

    def __init__(self, args: RewardBiasArgs, handle: Handle) -> None:
        super().__init__(filled(args, VARIABLES), handle)
        settings: RewardBiasArgs = self.args
        config_map = ConfigMapName(settings.namespace or NAMESPACE, settings.config_map or CONFIG_MAP)
        self.rewards = learn(handle, config_map, lambda: Rewards(settings, self._node_names))
        if self.rewards.args != settings:
            where = f"{config_map.namespace}/{config_map.name}"
            raise PluginError(f"profiles with different settings learn into the ConfigMap {where}; give each its own")

    def answer_key(self, pod: Pod) -> Hashable:
        kind = type_of(pod.metadata.labels, pod.metadata.name)  # where it is the name, equal pods differ in it
        return kind, self.rewards.generation(kind)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores | int:
        """Only the nodes of which something is known are looked at one by one."""
        kind = type_of(cycle.pod.metadata.labels, cycle.pod.metadata.name)
        rewards, cluster = self.rewards, cycle.cluster
        column = np.full(cluster.columns.rows, POINTS * rewards.points(kind, ""), dtype=np.int64)
        if self.args.compat:
            column[:] = [POINTS * rewards.points(kind, name) for name in cluster.names]
        for name, reward in rewards.known(kind).items():
            row = cluster.row_of.get(name)
            if row is not None:
                column[row] = POINTS * reward.points
        scores: Scores = nodes.pick(column)
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        kind = type_of(cycle.pod.metadata.labels, cycle.pod.metadata.name)
        return POINTS * self.rewards.points(kind, node.name)

    def _node_names(self) -> list[str]:
        cluster = self.handle.cluster
        return [cluster.names[row] for row in cluster.order.rows]


# Rewards

START = 1.0
OF_NODES, OF_TYPES = "_nodes", "_types"
"""Stand beside types: no label has a value that begins so."""
LARGEST = 900_000
"""Characters to keep: a ConfigMap ends at a MiB."""
MILLION = 10**6


class Reward:
    __slots__ = ("at", "lessons", "millionths", "value")

    def __init__(self, value: float, lessons: int = 0, at: float = 0.0) -> None:
        self.lessons = lessons
        self.at = at
        self.move(value)

    def move(self, value: float) -> None:
        self.value = value
        self.millionths = int(f"{value:.6f}".replace(".", ""))
        """As it is written: six decimals."""

    @property
    def points(self) -> int:
        """From 0 to 10: as it is written, times ten, cut."""
        return self.millionths * 10 // MILLION


class Rewards:
    """A learner (see `framework.pod_outcomes`). `nodes` tells which there are; only the original's ways need it."""

    def __init__(self, args: RewardBiasArgs, nodes: Callable[[], Iterable[str]] = tuple) -> None:
        self.args = args
        self._nodes = nodes
        self._table: dict[str, dict[str, Reward]] = {}
        self._generations: dict[str, int] = {}
        self._forgotten = 0
        self._first_nodes: dict[str, frozenset[str]] = {}
        """The nodes there were when a type came first."""

    def points(self, kind: str, node: str) -> int:
        """The points of a node for pods of a type."""
        if self.args.compat and kind not in self._table:
            return 0
        found = self._table.get(kind, {}).get(node)
        return (Reward(self._start(kind, node)) if found is None else found).points

    def known(self, kind: str) -> Mapping[str, Reward]:
        """The rewards of a type, by node."""
        return self._table.get(kind, {})

    def generation(self, kind: str) -> tuple[int, int]:
        """Moves whenever points of this type may."""
        return self._forgotten, self._generations.get(kind, 0)

    # Learning

    def observe(self, pod: PodOutcome, now: float) -> bool:
        node, kind = pod.spec.node_name, type_of(pod.metadata.labels, pod.metadata.name)
        reward = lesson(pod, self.args.lasting_run.seconds) if kind and node else None
        return reward is not None and self.learn(kind, node, reward, now)

    def learn(self, kind: str, node: str, reward: float, now: float) -> bool:
        """Take in one lesson; whether it changed anything."""
        entries = ((OF_NODES, node), (kind, node), (OF_TYPES, kind))
        changed = [self._learn(table, name, reward, now) for table, name in entries]
        return any(changed)

    def _learn(self, table: str, name: str, reward: float, now: float) -> bool:
        rate, known = self.args.learning_rate, self._table.get(table, {}).get(name)
        if known is None:
            if reward == START and not self.args.compat:
                return False  # it stays what it is, and most pods never fail
            rewards = self._meet(table)
            known = rewards[name] = Reward(self._start(table, name))
        known.move((1 - rate) * known.value + rate * reward)
        known.lessons += 1
        known.at = now
        self._generations[table] = self._generations.get(table, 0) + 1
        return True

    def _meet(self, table: str) -> dict[str, Reward]:
        if table not in self._table:
            self._table[table] = {}
            self._first_nodes[table] = frozenset(self._nodes()) if self.args.compat else frozenset()
        return self._table[table]

    def _start(self, table: str, name: str) -> float:
        late = self.args.compat and table not in (OF_NODES, OF_TYPES) and name not in self._first_nodes.get(table, ())
        return 0.0 if late else START

    # Keeping

    def restore(self, saved: Mapping[str, str], now: float) -> None:
        for table, text in saved.items():
            for line in text.splitlines():
                name, read = _read(line)
                if read is None or self._is_old(read, now):
                    continue
                mine = self._meet(table).get(name)
                if mine is None or mine.lessons < read.lessons:
                    self._table[table][name] = read
                    self._generations[table] = self._generations.get(table, 0) + 1

    def save(self, now: float) -> dict[str, str]:
        self._forget(now)
        lines = [
            (reward.value, table, f"{name} {reward.value:.6f} {reward.lessons} {format_time(reward.at)}\n")
            for table, rewards in self._table.items()
            for name, reward in rewards.items()
        ]
        lines.sort()
        room = LARGEST
        saved: dict[str, list[str]] = {}
        for _value, table, line in lines:
            room -= len(line) + (0 if table in saved else len(table))
            if room < 0:
                break
            saved.setdefault(table, []).append(line)
        return {table: "".join(sorted(saved[table])) for table in sorted(saved)}

    def _forget(self, now: float) -> None:
        for table, rewards in list(self._table.items()):
            gone = [name for name, reward in rewards.items() if self._is_old(reward, now) or self._is_well(reward)]
            for name in gone:
                del rewards[name]
            if gone:
                self._generations[table] = self._generations.get(table, 0) + 1
            if not rewards and not self.args.compat:
                del self._table[table]
                self._generations.pop(table, None)
                self._forgotten += 1

    def _is_old(self, reward: Reward, now: float) -> bool:
        return now - reward.at > self.args.forget_after.seconds

    def _is_well(self, reward: Reward) -> bool:
        return reward.millionths == MILLION and not self.args.compat


def _read(line: str) -> tuple[str, Reward | None]:
    """One line, as `keep` writes it; None where it tells no reward."""
    name, *rest = line.split()[:4] or [""]
    if len(rest) < 3:
        return name, None
    value, lessons = read_decimal(rest[0]), read_whole(rest[1])
    if value is None or not 0 <= value <= 1 or lessons is None or lessons < 1:
        return name, None
    try:
        return name, Reward(value, lessons, parse_time(rest[2]))
    except ValueError:
        return name, None


# Lessons

TYPE_LABELS = ("podtype", "app", "name")
SUCCESS, DOUBT, FAILURE = 1.0, 0.5, 0.0


def type_of(labels: Mapping[str, str], name: str) -> str:
    """What kind of pod it is: the first of three labels that it has, else its own name; empty: none.

    >>> type_of({"app": "web", "name": "x"}, "web-1"), type_of({}, "web-1"), type_of({"app": ""}, "web-1")
    ('web', 'web-1', '')
    """
    return next((labels[label] for label in TYPE_LABELS if label in labels), name)


def lesson(pod: PodOutcome, lasting_run: float) -> float | None:
    """The reward that this state of the pod gives its node; None where it teaches nothing."""
    if pod.status.phase in ("Failed", "Unknown"):
        return FAILURE
    if pod.status.phase != "Running":
        return None
    teaches, reward = True, SUCCESS
    for container in pod.status.container_statuses:
        ended, before = container.state.terminated, container.last_state.terminated
        if ended is not None:
            if ended.exit_code != 0:
                teaches, reward = True, DOUBT if before is None or _seconds(ended) > lasting_run else FAILURE
        elif before is not None or container.state.running is None:
            teaches = False
    return reward if teaches else None


def _seconds(run: Ended) -> float:
    """How long it lasted; not at all where that is not written down."""
    try:
        return parse_time(run.finished_at or "") - parse_time(run.started_at or "")
    except ValueError:
        return 0.0

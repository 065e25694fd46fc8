"""Answers kube-scheduler's four questions for one agent (or several as one), from body to body.

A question that cannot be answered gets one sentence in `Error`: for filter and bind in the answer itself, with status
200, because that is where kube-scheduler reads it; for prioritize and preempt, whose answers have no such field, with a
status that says whose fault it is. No score and no verdict is ever made up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Final, NamedTuple

import msgspec
import numpy as np

from podium.cluster import Cluster, Rows
from podium.engine.scheduler import Scheduler
from podium.extender.agents import Agent
from podium.extender.assembly import BINDER, look_beyond_rows, may_see_images, runtime_of
from podium.extender.nodes_by_name import NamedNodes, NodeNameLists
from podium.extender.nodes_in_full import NodesInFull
from podium.extender.plugin_subset import FilteredNodes, FilterSubset, ScoreSubset
from podium.extender.request_parsing import (
    BadRequestError,
    ExtenderArgs,
    PodReader,
    Text,
    read_args,
    read_args_of_any_shape,
    read_binding_args,
    read_fields,
    read_pod,
    read_value,
)
from podium.extender.responses import (
    Body,
    HostTexts,
    Points,
    all_names,
    all_nodes,
    error,
    filter_error,
    meta_victims,
    some_names,
    some_nodes,
)
from podium.framework import Cycle, PluginError, Status
from podium.framework.answers import status_of
from podium.framework.status import SKIPPED
from podium.framework.timer import Step
from podium.kube import Pod
from podium.serving.log import LOG, TRACE

NOT_KNOWN = Status.unschedulable("the extender does not know this node (yet)")
OK, BAD_REQUEST, FAILED, NOT_READY = 200, 400, 500, 503
MOST_NODES: Final = 100


class Reply(NamedTuple):
    """An answer: HTTP status and body."""

    status: int
    body: Body
    problem: str = ""
    """What went wrong, for the log."""
    logged: bool = False
    """Whether the log has it already, with the plugin and the line."""


class AgentContext:
    """What all agents of a process have in common: the cluster, and what was read before."""

    def __init__(self, engine: Scheduler, *, watched: bool, unready: Callable[[], str | None] = lambda: None) -> None:
        self.engine = engine
        self.watched = watched
        self.pods = PodReader(engine.cluster.facts)
        self.lists = NodeNameLists(engine.cluster)
        self.in_full = NodesInFull(
            engine.cluster,
            watched=watched,
            beyond_rows=look_beyond_rows(engine),
            images=watched or may_see_images(engine),
        )
        self.hosts = HostTexts(engine.cluster)
        self.unready = unready
        """What keeps questions about names from being answered; None when nothing does."""


class AgentService:
    """An agent's answers.

    `filters` are plugins; `scores` are sets of them with weights, each giving points of its own, which are added.
    """

    def __init__(
        self, context: AgentContext, filters: Sequence[str], scores: Sequence[tuple[Mapping[str, int], int]]
    ) -> None:
        self._context = context
        self._cluster: Cluster = context.engine.cluster
        self._filtering = FilterSubset(context.engine, filters)
        self._scoring = [ScoreSubset(context.engine, weights, most) for weights, most in scores]
        names = {*filters, *(name for weights, _most in scores for name in weights)}
        self._runtime = runtime_of(context.engine)
        self._binders = self._runtime.only({*names, BINDER}).binds

    # Filter

    def filter(self, body: bytes) -> Reply:
        try:
            return Reply(OK, self._filter(body))
        except (BadRequestError, PluginError) as problem:
            return Reply(OK, filter_error(str(problem)), str(problem), _logged(problem))

    def _filter(self, body: bytes) -> Body:
        try:
            return self._filter_nodes(read_args(body))
        except BadRequestError:
            return self._filter_nodes(read_args_of_any_shape(body))

    def _filter_nodes(self, args: ExtenderArgs) -> Body:
        pod = self._context.pods.read(args.pod)
        if args.nodes is not None:
            return self._filter_in_full(pod, args.nodes)
        named = self._named(args)
        filtered = self._filtering.filter_nodes(pod, named.rows)
        log_verdicts(pod, named.known, filtered)
        if not filtered.refused and not named.unknown:
            return all_names(named.text)
        refused = dict.fromkeys(named.unknown, NOT_KNOWN)
        refused.update((named.known[position], status) for position, status in filtered.refused.items())
        return some_names([name for name in named.names if name not in refused], refused)

    def _filter_in_full(self, pod: Pod, items: memoryview) -> Body:
        with self._context.in_full.placed(items) as given:
            filtered = self._filtering.filter_nodes(pod, given.rows)
            log_verdicts(pod, given.names, filtered)
        if not filtered.refused:
            return all_nodes(items)
        passed = (text for text, fits in zip(given.texts, filtered.passed.tolist(), strict=True) if fits)
        return some_nodes(passed, {given.names[position]: status for position, status in filtered.refused.items()})

    # Prioritize

    def prioritize(self, body: bytes) -> Reply:
        return _reply_or_error(self._prioritize, body)

    def _prioritize(self, body: bytes) -> bytes:
        try:
            return self._score_nodes(read_args(body))
        except BadRequestError:
            return self._score_nodes(read_args_of_any_shape(body))

    def _score_nodes(self, args: ExtenderArgs) -> bytes:
        pod = self._context.pods.read(args.pod)
        if args.nodes is None:
            named = self._named(args)
            return self._context.hosts.listed(named.rows, self._points(pod, named.rows))
        with self._context.in_full.placed(args.nodes) as given:
            return self._context.hosts.listed(given.rows, self._points(pod, given.rows))

    def _points(self, pod: Pod, rows: Rows) -> Points:
        if not len(rows):
            return np.zeros(0, dtype=np.int64)
        total = self._scoring[0].points(pod, rows)
        for scoring in self._scoring[1:]:
            total = total + scoring.points(pod, rows)
        log_points(pod, [self._cluster.names[row] for row in rows.tolist()] if logs_answers() else (), total)
        return total

    def _named(self, args: ExtenderArgs) -> NamedNodes:
        if args.names is None:
            raise BadRequestError("neither Nodes nor NodeNames is given: one of them must be")
        if not self._context.watched:
            raise BadRequestError(
                "NodeNames came without Nodes, but no cluster is watched here: set nodeCacheCapable to false, "
                "or start podium extender without --no-watch"
            )
        unready = self._context.unready()
        if unready is not None:
            raise NotReadyError(unready)
        named = self._context.lists.read(args.names)
        if named.unknown and not named.known:
            some = ", ".join(named.unknown[:3])
            raise BadRequestError(
                f"none of the {len(named.unknown)} nodes is known ({some}): is another cluster watched here?"
            )
        return named

    # Preempt

    def preempt(self, body: bytes) -> Reply:
        return _reply_or_error(self._preempt, body)

    def _preempt(self, body: bytes) -> bytes:
        fields = read_fields(body, "Pod", "NodeNameToVictims", "NodeNameToMetaVictims")
        pod = self._context.pods.read(bytes(fields["Pod"]))
        victims = _victims(fields)
        if self._filtering and self._context.watched:
            unready = self._context.unready()
            if unready is not None:
                raise NotReadyError(unready)
            victims = {name: found for name, found in victims.items() if self._passes_without(pod, name, found[0])}
        return meta_victims(victims)

    def _passes_without(self, pod: Pod, name: str, uids: Sequence[str]) -> bool:
        row = self._cluster.row_of.get(name)
        if row is None or self._cluster.nodes[row] is None:
            return False
        return self._filtering.passes_without(pod, row, uids)

    # Bind

    async def bind(self, body: bytes) -> Reply:
        try:
            name, namespace, uid, node = read_binding_args(body)
            metadata = {"name": name, "namespace": namespace, "uid": uid}
            status = await self._bind(msgspec.convert({"metadata": metadata}, Pod), node)
        except (BadRequestError, PluginError) as problem:
            return Reply(OK, error(str(problem)), str(problem), _logged(problem))
        if status is None:
            return Reply(OK, error(""))
        return Reply(OK, error(status.message), status.message)

    async def _bind(self, pod: Pod, node: str) -> Status | None:
        cycle = Cycle(pod, self._cluster)
        for plugin in self._binders:
            try:
                answer = plugin.bind(cycle, node)
                if isawaitable(answer):
                    answer = await answer
                status = status_of(Step.BIND, answer)
            except Exception as error:  # whatever the plugin raises
                raise self._runtime.failed(Step.BIND, plugin.name, error, pod, node) from error
            if status is None or status.code != SKIPPED:
                return status
        return Status.error(f"no bind plugin would bind pod {pod.key}")


class NotReadyError(BadRequestError):
    """The question is fine, but the cluster is not known yet."""


def agent_service(context: AgentContext, agents: Sequence[Agent]) -> AgentService:
    """Agents as one: a node must pass all their filters, and gets the sum of their points."""
    filters = [plugin for agent in agents for plugin in agent.predicates.values()]
    scores = [(agent.score_weights, agent.most_points) for agent in agents if agent.priorities]
    return AgentService(context, filters, scores)


def _reply_or_error(answer: Callable[[bytes], bytes], body: bytes) -> Reply:
    """For answers that have no room for an error."""
    try:
        return Reply(OK, answer(body))
    except BadRequestError as problem:
        status = NOT_READY if isinstance(problem, NotReadyError) else BAD_REQUEST
        return Reply(status, error(str(problem)), str(problem))
    except PluginError as problem:
        return Reply(FAILED, error(str(problem)), str(problem), _logged(problem))


def _logged(problem: Exception) -> bool:
    return isinstance(problem, PluginError) and problem.logged


def _victims(fields: Mapping[str, Text]) -> dict[str, tuple[list[str], int]]:
    """By node, the uids of the pods to be evicted and how many budgets that violates."""
    for key, uid_of in (("NodeNameToMetaVictims", _uid), ("NodeNameToVictims", _uid_of_pod)):
        by_node: dict[str, msgspec.Raw] | None = read_value(fields[key], dict[str, msgspec.Raw] | None, key)
        if by_node is not None:
            return {name: _victims_on(f"{key}[{name!r}]", text, uid_of) for name, text in by_node.items()}
    raise BadRequestError("neither NodeNameToVictims nor NodeNameToMetaVictims is given: one of them must be")


def _victims_on(what: str, text: msgspec.Raw, uid_of: Callable[[msgspec.Raw, str], str]) -> tuple[list[str], int]:
    fields = read_fields(text, "Pods", "NumPDBViolations", what=what)
    pods: list[msgspec.Raw] = read_value(fields["Pods"], list[msgspec.Raw] | None, f"{what}.Pods") or []
    violations: int = read_value(fields["NumPDBViolations"], int | None, f"{what}.NumPDBViolations") or 0
    return [uid_of(pod, f"{what}.Pods[{number}]") for number, pod in enumerate(pods)], violations


def _uid(text: msgspec.Raw, what: str) -> str:
    uid: str = read_value(read_fields(text, "UID", what=what)["UID"], str | None, f"{what}.UID") or ""
    if not uid:
        raise BadRequestError(f"{what} has no UID")
    return uid


def _uid_of_pod(text: msgspec.Raw, what: str) -> str:
    uid = read_pod(text, what).uid
    if not uid:
        raise BadRequestError(f"{what} has no metadata.uid")
    return uid


def logs_answers() -> bool:
    """Whether answers are logged: at level debug a line for each node, with its verdict or its points.

    Of a large cluster the first nodes are shown; level trace shows all.
    """
    return LOG.isEnabledFor(logging.DEBUG)


def log_verdicts(pod: Pod, names: Sequence[str], filtered: FilteredNodes) -> None:
    if not logs_answers():
        return
    for position, name in enumerate(names[: _most()]):
        status = filtered.refused.get(position)
        verdict = "passes" if status is None else f"is refused: {status.message}"
        LOG.debug("filter: pod %s: node %s %s", pod.key, name, verdict)
    _log_rest("filter", pod, len(names))


def log_points(pod: Pod, names: Sequence[str], points: Points) -> None:
    if not logs_answers():
        return
    for name, number in zip(names[: _most()], points.tolist(), strict=False):
        LOG.debug("prioritize: pod %s: node %s gets %d points", pod.key, name, number)
    _log_rest("prioritize", pod, len(names))


def _most() -> int | None:
    return None if LOG.isEnabledFor(TRACE) else MOST_NODES


def _log_rest(verb: str, pod: Pod, nodes: int) -> None:
    most = _most()
    if most is not None and nodes > most:
        LOG.debug("%s: pod %s: and %d more nodes, which level trace shows", verb, pod.key, nodes - most)

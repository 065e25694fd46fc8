"""What kube-scheduler decided, read from its log while it runs.

At `--v=5 --vmodule=schedule_one=10` the log says which pod is being tried, every plugin's weighted score on every
feasible node, the totals, the failure text, the node chosen for preemption with its victims, and each node and pod
event in the order in which the cache took it. Attempts are kept by pod in the order they began: a pod that stays
pending may be tried again at any time, and only the attempt on a known cluster can be compared. The handlers know the
words of every minor in the test bed.
"""

import ast
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# Streamed lists reach the cache in the order of a Go map; a plain list comes by name, the same in every run.
FLAGS = ("--vmodule=schedule_one=10", "--feature-gates=WatchListClient=false")
VERBOSITY = 5

_HEADER = re.compile(rb'^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.-]+:\d+\] "((?:[^"\\]|\\.)*)"(.*)$', re.DOTALL)
_PAIR = re.compile(r' ([\w ]+?)=("(?:[^"\\]|\\.)*"|\S+)')


class SilentSchedulerError(Exception):
    """The scheduler did not do what was awaited in time."""


@dataclass
class Attempt:
    """One scheduling cycle of one pod, as far as the log shows it."""

    pod: str
    number: int  # position among all attempts of this scheduler
    outcome: str = ""  # bound, unschedulable or error, once it is known
    node: str = ""
    message: str = ""
    evaluated: int = 0
    feasible: int = 0
    scores: dict[str, dict[str, int]] = field(default_factory=dict)  # by node, in the order of the feasible list
    totals: dict[str, int] = field(default_factory=dict)
    target: str = ""  # the node to be freed by preemption
    victims_by_node: dict[str, list[str]] = field(default_factory=dict)
    victims_already_going: list[str] = field(default_factory=list)
    preemption_done: bool = False

    @property
    def victims(self) -> list[str]:
        return self.victims_by_node.get(self.target, [])

    @property
    def evictions_pending(self) -> bool:
        """Whether pods are still to be deleted on behalf of this attempt."""
        return set(self.victims) > set(self.victims_already_going) and not self.preemption_done


class SchedulerLog:
    """Follows the log file of one scheduler."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""
        self.attempts: list[Attempt] = []
        self.nodes: list[str] = []  # in the order in which the cache holds them
        self.gated: set[str] = set()
        self.seen: Counter[tuple[str, str]] = Counter()  # (event text, object) -> times
        self._latest: dict[str, Attempt] = {}

    def close(self) -> None:
        self._file.close()

    def latest(self, pod: str) -> Attempt | None:
        return self._latest.get(pod)

    def read(self) -> bool:
        """Take in what has been written since; whether there was anything."""
        data = self._rest + self._file.read()
        lines = data.split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._take(line)
        return bool(lines)

    def wait(self, ready: Callable[[], bool], what: str, timeout: float = 20.0) -> None:
        deadline = time.monotonic() + timeout
        while True:
            self.read()
            if ready():
                return
            if time.monotonic() > deadline:
                raise SilentSchedulerError(f"kube-scheduler did not {what} within {timeout:.0f} s")
            time.sleep(0.004)

    def wait_seen(self, event: str, name: str, times: int = 1) -> None:
        self.wait(lambda: self.seen[event, name] >= times, f"log {event!r} for {name}")

    def wait_quiet(self, seconds: float) -> None:
        """Wait until nothing was logged for so long and no attempt is open."""
        quiet_since = time.monotonic()
        deadline = quiet_since + 20.0
        while time.monotonic() - quiet_since < seconds or any(not each.outcome for each in self._latest.values()):
            if self.read():
                quiet_since = time.monotonic()
            if time.monotonic() > deadline:
                raise SilentSchedulerError("kube-scheduler kept trying pods for 20 s")
            time.sleep(0.01)

    def _take(self, line: bytes) -> None:
        found = _HEADER.match(line)
        if found is None:
            return
        message = _unquote(found[1])
        handler = _HANDLERS.get(message)
        if handler is not None:
            pairs = {key: _value(value) for key, value in _PAIR.findall(found[2].decode(errors="replace"))}
            handler(self, message, pairs)

    def _begin(self, _: str, pairs: dict[str, str]) -> None:
        attempt = Attempt(pairs["pod"], len(self.attempts))
        self.attempts.append(attempt)
        self._latest[attempt.pod] = attempt

    def _score(self, _: str, pairs: dict[str, str]) -> None:
        scores = self._latest[pairs["pod"]].scores.setdefault(pairs["node"], {})
        scores[pairs["plugin"]] = int(pairs["score"])

    def _total(self, _: str, pairs: dict[str, str]) -> None:
        self._latest[pairs["pod"]].totals[pairs["node"]] = int(pairs["score"])

    def _assumed(self, _: str, pairs: dict[str, str]) -> None:
        self._latest[pairs["pod"]].node = pairs["node"].removeprefix("/")

    def _bound(self, _: str, pairs: dict[str, str]) -> None:
        attempt = self._latest[pairs["pod"]]
        attempt.node = pairs["node"]
        attempt.evaluated, attempt.feasible = int(pairs["evaluatedNodes"]), int(pairs["feasibleNodes"])
        attempt.outcome = "bound"

    def _unfit(self, message: str, pairs: dict[str, str]) -> None:
        attempt = self._latest[pairs["pod"]]
        attempt.message = pairs.get("err", "no nodes available to schedule pods")
        attempt.outcome = "unschedulable"

    def _failed(self, _: str, pairs: dict[str, str]) -> None:
        attempt = self._latest[pairs["pod"]]
        attempt.message, attempt.outcome = pairs["err"], "error"

    def _victim(self, _: str, pairs: dict[str, str]) -> None:
        # Only the scheduling thread selects victims, so they belong to the attempt that began last.
        self.attempts[-1].victims_by_node.setdefault(pairs["node"], []).append(pairs["pod"])

    def _victims(self, _: str, pairs: dict[str, str]) -> None:
        pods = [f"{each['namespace']}/{each['name']}" for each in json.loads(pairs["pods"])]
        self.attempts[-1].victims_by_node.setdefault(pairs["node"], []).extend(pods)

    def _target(self, _: str, pairs: dict[str, str]) -> None:
        self._latest[pairs["pod"]].target = pairs["node"]

    def _already_going(self, _: str, pairs: dict[str, str]) -> None:
        self._latest[pairs["preemptor"]].victims_already_going.append(pairs["victim"])

    def _evicted(self, _: str, pairs: dict[str, str]) -> None:
        self._latest[pairs["preemptor"]].preemption_done = True

    def _gate(self, _: str, pairs: dict[str, str]) -> None:
        self.gated.add(pairs["entity"] if "entity" in pairs else pairs["pod"])

    def _node_added(self, message: str, pairs: dict[str, str]) -> None:
        self.nodes.append(pairs["node"])
        self.seen[message, pairs["node"]] += 1

    def _event(self, message: str, pairs: dict[str, str]) -> None:
        self.seen[message, pairs["pod"]] += 1


NODE_ADDED = "Add event for node"
POD_BOUND = "Add event for scheduled pod"
BOUND_POD_UPDATED = "Update event for scheduled pod"
BOUND_POD_DELETED = "Delete event for scheduled pod"
PENDING_POD_UPDATED = "Update event for unscheduled pod"
PENDING_POD_DELETED = "Delete event for unscheduled pod"

_HANDLERS: dict[str, Callable[[SchedulerLog, str, dict[str, str]], None]] = {
    "Attempting to schedule pod": SchedulerLog._begin,
    "Plugin scored node for pod": SchedulerLog._score,
    "Calculated node's final score for pod": SchedulerLog._total,
    "AssumePodVolumes": SchedulerLog._assumed,
    "Successfully bound pod to node": SchedulerLog._bound,
    "Unable to schedule pod; no fit; waiting": SchedulerLog._unfit,
    "Unable to schedule pod; no nodes are registered to the cluster; waiting": SchedulerLog._unfit,
    "Error scheduling pod; retrying": SchedulerLog._failed,
    "Pod is a potential preemption victim on node": SchedulerLog._victim,
    "Pods are potential preemption victims on node": SchedulerLog._victims,
    "the target node for the preemption is determined": SchedulerLog._target,
    "Victim Pod is already being deleted, skipping the API call for it": SchedulerLog._already_going,
    "Async Preemption finished completely": SchedulerLog._evicted,
    "Pod moved to an internal scheduling queue, because the pod is gated": SchedulerLog._gate,
    "Entity moved to an internal scheduling queue, because it is gated": SchedulerLog._gate,
    NODE_ADDED: SchedulerLog._node_added,
    POD_BOUND: SchedulerLog._event,
    BOUND_POD_UPDATED: SchedulerLog._event,
    BOUND_POD_DELETED: SchedulerLog._event,
    PENDING_POD_UPDATED: SchedulerLog._event,
    PENDING_POD_DELETED: SchedulerLog._event,
}


def _unquote(text: bytes) -> str:
    return text.decode(errors="replace").replace('\\"', '"')


def _value(text: str) -> str:
    # Go quotes strings as Python does, as far as these messages go.
    return str(ast.literal_eval(text)) if text.startswith('"') else text

"""Decides who scores the nodes for a pod, the model or its fallback, and keeps account of it.

    off       the fallback decides; the model is not asked
    shadow    the fallback decides; the model is asked, and both are compared
    canary:p  the model decides for a share p of the pods, by a hash of their uid; all are compared
    active    the model decides

LearnedScore and ModelScore share this: the guard (`model_guard`), the model's health, the log of decisions, and the
counts by reason. A pod counts once for each attempt to place it. Reasons why a fallback decided:

    timeout        no answer within the deadline          stale_metrics  nothing fresh is known of the nodes
    exception      the model failed                        ood            the input is far from that of the training
    nan            an answer is not a finite number        breaker_open   the model failed too often, and rests
    schema         the model is for other features         no_model       no model can be reached
    off, shadow, canary, demoted: the mode says so
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from podium.cluster import Nodes
from podium.config.field import FieldError, FieldPath
from podium.framework import Cycle, Handle, Scores
from podium.kube import Pod
from podium_lab.model_decision_log import DecisionLog, ScoreComparison, compare
from podium_lab.model_guard import ModelGuard
from podium_lab.model_health import ModelHealth

ASKED: Final = ("", "shadow", "canary", "demoted")
"""Sources of decisions for which the model is asked, be it to be compared."""
_MODE: Final = re.compile(r"off|shadow|active|canary:(0(?:\.\d+)?|1(?:\.0+)?)")


class ModelMode(NamedTuple):
    """The argument `mode`, read."""

    text: str

    @property
    def on_trial(self) -> bool:
        """Whether the model is compared with the fallback at every decision."""
        return self.text == "shadow" or self.text.startswith("canary:")

    @property
    def share(self) -> float:
        """The share of pods that the model decides."""
        if self.text.startswith("canary:"):
            return float(self.text.partition(":")[2])
        return 1.0 if self.text == "active" else 0.0


def mode_errors(mode: str, path: FieldPath) -> Iterator[FieldError]:
    """What is wrong with the argument `mode`."""
    if not _MODE.fullmatch(mode):
        detail = "must be off, shadow, active, or canary: and a share such as canary:0.1"
        yield FieldError.invalid(path.child("mode"), mode, detail)


def share_errors(name: str, value: float, path: FieldPath) -> Iterator[FieldError]:
    """What is wrong with an argument that is a share."""
    if not (math.isfinite(value) and 0 <= value <= 1):
        yield FieldError.invalid(path.child(name), value, "must be between 0 and 1")


class ModelTrialSettings(NamedTuple):
    """What the arguments of a plugin say about its model."""

    mode: str
    deadline: float
    """Seconds."""
    most_bad: float
    log: str


class ModelDecisions:
    """Who decided about each pod, and how the model does."""

    def __init__(self, plugin: str, settings: ModelTrialSettings, handle: Handle) -> None:
        self.guard = ModelGuard(settings.deadline)
        self.health = ModelHealth(settings.most_bad)
        self.log = DecisionLog(settings.log) if settings.log else None
        self.last: tuple[str, str] = "", ""
        """The pod last decided about, by uid, and why the fallback did; empty: the model did."""
        self._plugin = plugin
        self._deadline = settings.deadline
        self._setting = ModelMode(settings.mode)
        self._handle = handle

    @property
    def mode(self) -> str:
        """How it works now: off, shadow, canary, active, or demoted."""
        demoted = self.health.demoted and self._setting.share > 0
        return "demoted" if demoted else self._setting.text.partition(":")[0]

    @property
    def compares(self) -> bool:
        """Whether the model is compared with the fallback at every decision."""
        return self._setting.on_trial

    def by_mode(self, pod: Pod) -> str:
        """Why the fallback decides about a pod although the model is well; empty where the model does."""
        if self._setting.text in ("off", "shadow"):
            return self._setting.text
        if self.health.demoted:
            return "demoted"
        share = self._setting.share
        return "" if share >= 1 or zlib.crc32(pod.uid.encode()) / 0xFFFFFFFF < share else "canary"

    def count(self, pod: Pod, reason: str) -> None:
        """Count a decision that begins."""
        if self.last[0] != pod.uid:
            self.guard.fallbacks[reason] += 1
            if reason in ASKED:
                self.health.decided()
        self.last = pod.uid, reason

    def recount(self, pod: Pod, reason: str) -> None:
        """The model was to be asked, and was not able to answer."""
        self.guard.fallbacks[self.last[1]] -= 1
        self.guard.fallbacks[reason] += 1
        self.was_bad()
        self.last = pod.uid, reason

    def failed(self, reason: str, error: Exception) -> str:
        """Report what went wrong with the model; returns the reason."""
        self.guard.failed(self._handle.clock.now())
        self._handle.report(f"{self._plugin}: {type(error).__name__}: {error}; the fallback decides")
        return reason

    def late(self, error: Exception) -> str:
        """Report that no answer came within the deadline; returns the reason."""
        self.guard.late(self._handle.clock.now())
        self._handle.report(f"{self._plugin}: {error}; the fallback decides")
        return "timeout"

    def took(self, nodes: int, seconds: float, now: float) -> None:
        """Learn from an answer about so many nodes."""
        self.health.took(seconds)
        self.guard.took(nodes, seconds, now)
        if seconds > self._deadline:
            self.was_bad()

    def was_bad(self) -> None:
        """The last answer was late or failed; report it where the model is demoted for it."""
        if self.health.was_bad():
            share = f"{self.health.bad_share:.1%} of its last answers were late or failed"
            self._handle.report(f"{self._plugin}: the model no longer decides: {share}; a new policy file may")

    def compare(self, cycle: Cycle, nodes: Nodes, fallback: Scores, model: Scores, seconds: float) -> ScoreComparison:
        """Compare both scores of the nodes, and log that."""
        names = [cycle.cluster.names[row] for row in nodes.rows.tolist()]
        found = compare(cycle.pod, names, fallback, model, seconds)
        self.health.compared(found.same, found.tau)
        if self.log is not None:
            self.log.compared(found)
        return found

    def placed(self, pod: Pod, node_name: str) -> None:
        """Log where the pod goes; with one feasible node no model was asked."""
        if self.log is not None:
            uid, reason = self.last
            self.log.decided(pod, node_name, reason if uid == pod.uid else "single")

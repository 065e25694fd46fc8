"""Times one profile's extension points in every attempt, and its plugins one by one in sampled attempts.

Timing a plugin's call costs about as much as a short call takes, so only some attempts are sampled. What a plugin calls
in turn is part of its own call: no plugin is timed while another is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

from podium.framework.cycle import Cycle
from podium.framework.diagnosis import PostFilterResult
from podium.framework.status import ERROR, SUCCESS, Code, Status, Wait
from podium.framework.timer import Step
from podium.serving.families import Histograms

P = ParamSpec("P")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")

CODE_NAMES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

FILTERING = (Step.PRE_FILTER, Step.FILTER)
DECIDING = (*FILTERING, Step.PRE_SCORE, Step.SCORE)
"""The steps at which plugins are evaluated."""


class ProfileMetricsTimer:
    """A `podium.framework.timer.ProfileTimer` that fills histograms."""

    def __init__(
        self,
        profile: str,
        now: Callable[[], float],
        points: Histograms,
        plugins: Histograms,
        node_hints: Histograms,
        stores: Histograms,
    ) -> None:
        self.profile = profile
        self.sampled = False
        self._now = now
        self._observers = {step: [points.of(step, CODE_NAMES[code], profile).observe for code in Code] for step in Step}
        """What to call with the seconds a step took, by status code."""
        self._plugins = plugins
        self._hinted, self._not_hinted = (node_hints.of(hinted, profile).observe for hinted in ("hint", "no_hint"))
        self._stored = stores.of(profile).observe
        self._in_plugin = False
        self._plugins_at: dict[Step, dict[str, None]] = {step: {} for step in DECIDING}
        self._decisions: dict[Step, dict[tuple[str, ...], int]] = {step: {} for step in DECIDING}
        """How many decisions skipped which plugins, in whatever order: they are summed up later."""

    def time(self, step: Step, code_of: Callable[[R], Code], run: Callable[[*Ts], R], *args: *Ts) -> R:
        began, code = self._now(), ERROR
        try:
            answer = run(*args)
            code = code_of(answer)
            return answer
        finally:
            self._observers[step][code](self._now() - began)

    def time_decision(
        self, step: Step, code_of: Callable[[R], Code], cycle: Cycle, run: Callable[[*Ts], R], *args: *Ts
    ) -> R:
        began, code = self._now(), ERROR
        try:
            answer = run(*args)
            code = code_of(answer)
            return answer
        finally:
            self._decided(step, code, began, cycle)

    def time_cached(
        self, step: Step, code_of: Callable[[R], Code | None], cycle: Cycle, run: Callable[[*Ts], R], *args: *Ts
    ) -> R:
        began = self._now()
        answer = run(*args)
        code = code_of(answer)
        if code is not None:
            self._decided(step, code, began, cycle)
        return answer

    def _decided(self, step: Step, code: Code, began: float, cycle: Cycle) -> None:
        self._observers[step][code](self._now() - began)
        skipped = tuple(cycle.skipped_filters if step in FILTERING else cycle.skipped_scores)
        decisions = self._decisions[step]
        decisions[skipped] = decisions.get(skipped, 0) + 1

    async def time_binding(
        self,
        step: Step,
        code_of: Callable[[R], Code],
        run: Callable[[*Ts], Awaitable[R]],
        *args: *Ts,
    ) -> R:
        began, code = self._now(), ERROR
        try:
            answer = await run(*args)
            code = code_of(answer)
            return answer
        finally:
            self._observers[step][code](self._now() - began)

    def timed_plugin(self, step: Step, plugin: str, method: Callable[P, R]) -> Callable[P, R]:
        now = self._now
        if step in DECIDING:
            self._plugins_at[step][plugin] = None

        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            if not self.sampled or self._in_plugin:
                return method(*args, **kwargs)
            self._in_plugin = True
            began, code = now(), ERROR
            try:
                answer = method(*args, **kwargs)
                code = code_of_answer(answer)
                return answer
            finally:
                self._in_plugin = False
                self._plugin_took(plugin, step, code, began)

        return timed

    def time_node_hint(self, run: Callable[[*Ts], str], *args: *Ts) -> str:
        began = self._now()
        hint = run(*args)
        (self._hinted if hint else self._not_hinted)(self._now() - began)
        return hint

    def time_store(self, run: Callable[[*Ts], None], *args: *Ts) -> None:
        began = self._now()
        run(*args)
        self._stored(self._now() - began)

    def timed_effect(self, step: Step, plugin: str, method: Callable[P, Any]) -> Callable[P, Any]:
        now = self._now

        async def timed(*args: P.args, **kwargs: P.kwargs) -> Any:
            began, code = now(), ERROR
            try:
                answer = method(*args, **kwargs)
                if isawaitable(answer):
                    answer = await answer
                code = SUCCESS if answer is None else answer.code if isinstance(answer, Status) else ERROR
                return answer
            finally:
                self._plugin_took(plugin, step, code, began)

        return timed

    def evaluations(self) -> dict[tuple[str, str], int]:
        """(plugin, extension point) → decisions that rest on it."""
        return {
            (plugin, step): sum(number for skipped, number in self._decisions[step].items() if plugin not in skipped)
            for step, plugins in self._plugins_at.items()
            for plugin in plugins
        }

    def _plugin_took(self, plugin: str, step: Step, code: Code, began: float) -> None:
        self._plugins.of(plugin, step, CODE_NAMES[code]).observe(self._now() - began)


def code_of_answer(answer: object) -> Code:
    """What a plugin's answer amounts to. One about many nodes is a success, whatever it says of them."""
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, PostFilterResult):
        return SUCCESS if answer.status is None else answer.status.code
    if isinstance(answer, Wait):
        return Code.WAIT
    return Code.UNSCHEDULABLE if isinstance(answer, str) or answer is False else SUCCESS

"""Checks what plugins answer, and names the plugin that failed.

A plugin may raise, return the wrong type, a wrong length, NaN or a score of 1,000. Whatever it does, the pod's cycle
fails with one sentence that names the plugin; nothing is bound on a wrong answer.

Also holds the weighted scores of the feasible nodes, per plugin and in sum.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from inspect import iscoroutine
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Mask, Nodes, Rows
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Nomination, PostFilterResult, Verdict, no_reason
from podium.framework.normalize import MAX_SCORE, Scores
from podium.framework.plugin import Plugin
from podium.framework.protocols import FilterNode, ScoreNode
from podium.framework.status import Code, PluginError, Status, Wait, WrongAnswerError
from podium.framework.timer import Step

_RUNNING = {
    Step.ADD_POD: 'running AddPod on PreFilter plugin "{}"',
    Step.REMOVE_POD: 'running RemovePod on PreFilter plugin "{}"',
    Step.FILTER: 'running "{}" filter plugin',
    Step.SCORE: 'running Score plugins: plugin "{}" failed with',
    Step.NORMALIZE: 'running Normalize on Score plugins: plugin "{}" failed with',
    Step.PREFLIGHT: 'running PreBindPreFlight "{}"',
}
"""kube-scheduler's words for a plugin that fails; at the other steps they are all of one form."""


def running(step: Step, plugin: str) -> str:
    """How a message about a plugin's failure begins.

    >>> running(Step.RESERVE, "Quota")
    'running Reserve plugin "Quota"'
    """
    known = _RUNNING.get(step)
    return f'running {step} plugin "{plugin}"' if known is None else known.format(plugin)


def failure(step: Step, plugin: str, error: Exception) -> PluginError:
    """What a plugin raised at a step, as the sentence that fails the pod's cycle."""
    return PluginError(f"{running(step, plugin)}: {describe(error)}")


def is_mistake(error: Exception) -> bool:
    """Whether an error is a mistake in a plugin, and not one that it reports on purpose."""
    return not isinstance(error, PluginError) or isinstance(error, WrongAnswerError)


class NodeFailedError(PluginError):
    """What a one-node filter raises where a node fails the cycle, but only if nothing else refuses the node."""


class FailedOnNodeError(Exception):
    """A plugin's one-node form raised; says on which of the nodes."""

    def __init__(self, node: str, error: Exception) -> None:
        super().__init__(str(error))
        self.node = node
        self.error = error


def describe(error: Exception) -> str:
    """What an exception says; its type helps where the words are not ours."""
    return str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"


def given(answer: object) -> str:
    """What a plugin answered, for a sentence; a coroutine is closed, so that Python does not warn of it, too.

    >>> given(None), given(30), given(["n1"])
    ('None', '30 (int)', "['n1'] (list)")
    """
    if answer is None:
        return "None"
    if iscoroutine(answer):
        answer.close()
        return "a coroutine: only bind and pre_bind may be async def"
    try:
        shown = reprlib.repr(answer)
    except Exception:  # whatever a plugin's own __repr__ raises
        shown = "one that cannot be shown"
    return f"{shown} ({type(answer).__name__})"


def not_this(wanted: str, answer: object) -> WrongAnswerError:
    """An answer that is not what the point wants."""
    return WrongAnswerError(f"it must give {wanted}, got {given(answer)}")


_WANTED: Final = {
    Step.PERMIT: "None, a Status or Wait(seconds)",
    Step.PREFLIGHT: "None, SKIP or an error",
    Step.BIND: "None, SKIP or a Status",
    Step.PRE_SCORE: "None, SKIP or a Status",
}


def status_of(step: Step, answer: object) -> Status | None:
    """An answer that must be None or a Status; success comes back as None."""
    if answer is None:
        return None
    if not isinstance(answer, Status):
        raise not_this(_WANTED.get(step, "None or a Status"), answer)
    return None if answer.code == Code.SUCCESS else answer


def rejection_or_error(step: Step, status: Status) -> Status:
    """A status that is not success: a rejection as it is, anything else as an error that names the plugin."""
    if status.rejected:
        return status
    return Status(Code.ERROR, (f"{running(step, status.plugin)}: {status.message}",), status.plugin)


def seconds_of(wait: Wait) -> float:
    """How long a plugin wants a pod held at Permit."""
    if isinstance(wait.seconds, int | float) and wait.seconds >= 0:
        return wait.seconds
    raise WrongAnswerError(f"Wait needs a number of seconds, at least 0, got {given(wait.seconds)}")


def checked_result(answer: object) -> PostFilterResult:
    """PostFilter's answer."""
    if not isinstance(answer, PostFilterResult):
        raise not_this("a PostFilterResult", answer)
    if answer.nomination is not None and not isinstance(answer.nomination, Nomination):
        raise WrongAnswerError(
            f"its PostFilterResult must have a Nomination or None as nomination, got {given(answer.nomination)}"
        )
    return answer


def verdict_of(plugin: Plugin, answer: object, nodes: Nodes) -> Verdict | None:
    """A vector filter's answer as a Verdict; None when all nodes pass."""
    if answer is None:
        return None
    if isinstance(answer, Verdict):
        codes = np.asarray(answer.codes)
        if codes.shape != (len(nodes),) or not np.issubdtype(codes.dtype, np.integer):
            raise WrongAnswerError(
                f"filter must give a Verdict with a whole number for each of {len(nodes)} nodes, "
                f"got {codes.dtype} of shape {codes.shape}"
            )
        answer.codes = codes
        return answer
    mask = np.asarray(answer)
    if mask.dtype != np.bool_ or mask.shape != (len(nodes),):
        raise WrongAnswerError(
            f"filter must give None, a Verdict, or a bool for each of {len(nodes)} nodes, "
            f"got {_array_given(answer, mask)}"
        )
    return Verdict.reject(~mask, default_refusal(plugin))


def node_status_of(plugin: Plugin, answer: object) -> Status | None:
    """A one-node filter's answer as a status; None when the node passes."""
    if answer is None:
        return None
    if isinstance(answer, bool | np.bool_):
        return None if answer else default_refusal(plugin)
    if isinstance(answer, str):
        if not answer:
            raise WrongAnswerError("filter_node must give the reason, or None where the node passes; got an empty text")
        return Status.unschedulable(answer)
    if isinstance(answer, Status):
        if answer.code == Code.SUCCESS:
            return None
        if answer.rejected:
            return answer if answer.message else Status(answer.code, default_refusal(plugin).reasons)
        if answer.code == Code.ERROR:
            raise PluginError(answer.message or "filter_node gave an error without a reason")
        raise WrongAnswerError(f"filter_node must give a Status that refuses the node, got {answer.code.name}")
    raise WrongAnswerError(f"filter_node must give None, a bool, a reason or a Status, got {given(answer)}")


def filter_by_node(plugin: Plugin, filter_node: FilterNode, cycle: Cycle, nodes: Nodes, undecided: Mask) -> Verdict:
    """The one-node form, asked for every node that is still undecided."""
    codes = np.zeros(len(nodes), dtype=np.int64)
    statuses: list[Status] = []
    for index in np.flatnonzero(undecided).tolist():
        node = nodes.info(index)
        try:
            status = node_status_of(plugin, filter_node(cycle, node))
        except NodeFailedError as error:
            status = Status.error(str(error))
        except Exception as error:  # whatever the plugin raises
            raise FailedOnNodeError(node.name, error) from error
        if status is not None:
            statuses.append(status)
            codes[index] = len(statuses)
    fails = any(status.code == Code.ERROR for status in statuses)
    return Verdict(codes, lambda code: statuses[code - 1], fails=fails)


def default_refusal(plugin: Plugin) -> Status:
    return Status.unschedulable(plugin.reason or no_reason(plugin.name))


def for_each(scores: Scores | int, nodes: int) -> Scores:
    """Scores as one per node, where there may be one for all."""
    return np.full(nodes, scores, dtype=np.int64) if isinstance(scores, int) else scores


def raw_scores_of(answer: Any, nodes: Nodes, method: str = "score") -> Scores:
    """A vector score's answer as int64 per node; one number stands for all nodes."""
    if type(answer) is int:
        return for_each(answer, len(nodes))
    if type(answer) is np.ndarray and answer.dtype == np.int64 and answer.shape == (len(nodes),):
        return answer
    scores = np.asarray(answer)
    wanted = f"{method} must give a whole number for each of {len(nodes)} nodes"
    if scores.shape != (len(nodes),):
        raise WrongAnswerError(f"{wanted}, got {_array_given(answer, scores)}")
    if np.issubdtype(scores.dtype, np.floating):
        if not np.isfinite(scores).all():
            raise WrongAnswerError(f"{wanted}, got NaN or infinity")
        if (scores != np.trunc(scores)).any():
            raise WrongAnswerError(f"{wanted}, got fractions: round them")
        return scores.astype(np.int64)
    if scores.dtype != np.bool_ and not np.issubdtype(scores.dtype, np.integer):
        raise WrongAnswerError(f"{wanted}, got {_array_given(answer, scores)}")
    return scores.astype(np.int64, copy=False)


def _array_given(answer: Any, array: NDArray[Any]) -> str:
    """What came where an array was wanted."""
    if isinstance(answer, np.ndarray | list | tuple):
        return f"{array.dtype} of shape {array.shape}"
    return given(answer)


def score_by_node(score_node: ScoreNode, cycle: Cycle, nodes: Nodes) -> Scores:
    """The one-node form, asked for every node."""
    scores = np.zeros(len(nodes), dtype=np.int64)
    for index in range(len(nodes)):
        node = nodes.info(index)
        try:
            scores[index] = _whole(score_node(cycle, node))
        except Exception as error:  # whatever the plugin raises
            if isinstance(error, OverflowError) and error.__traceback__ and error.__traceback__.tb_next is None:
                error = WrongAnswerError("score_node must give a whole number, got one of more than 64 bits")
            raise FailedOnNodeError(node.name, error) from error
    return scores


def _whole(score: Any) -> int:
    if isinstance(score, bool | int | np.integer):
        return int(score)
    if isinstance(score, float) and score == score and score.is_integer():  # noqa: PLR0124 (NaN is not itself)
        return int(score)
    raise WrongAnswerError(f"score_node must give a whole number, got {given(score)}")


class OutOfRangeError(WrongAnswerError):
    """A score that is not in 0–100, of the node at a position; None where all have it."""

    def __init__(self, score: int, position: int | None) -> None:
        super().__init__(
            f"returns an invalid score {score}, it should in the range of [0, {MAX_SCORE}] after normalizing",
            f"the invalid score {score}; it must be from 0 to {MAX_SCORE}: give such a score, or set a normalizer",
        )
        self.position = position


def out_of_range(plugin: str, error: OutOfRangeError, *, logged: bool = False) -> PluginError:
    """The same in kube-scheduler's words."""
    sentence = PluginError(f'applying score defaultWeights on Score plugins: plugin "{plugin}" {error}')
    sentence.logged = logged
    return sentence


def check_scores(plugin: str, scores: Scores) -> None:
    """Raises the sentence that fails the pod's cycle where a plugin's score is not in 0–100."""
    try:
        check_range(scores)
    except OutOfRangeError as error:
        raise out_of_range(plugin, error) from None


def check_range(scores: Scores | int) -> None:
    """After normalising, every score must lie in 0–100."""
    if isinstance(scores, int):
        if not 0 <= scores <= MAX_SCORE:
            raise OutOfRangeError(scores, None)
    elif np.maximum.reduce(scores.view(np.uint64), initial=0) > MAX_SCORE:  # as unsigned, a negative score is huge
        position = int(np.flatnonzero((scores < 0) | (scores > MAX_SCORE))[0])
        raise OutOfRangeError(int(scores[position]), position)


class ScoreTable:
    """Weighted scores per plugin and in sum, one entry per feasible node."""

    __slots__ = ("_by_plugin", "_rows", "total")

    def __init__(self, by_plugin: Mapping[str, Scores | int], total: Scores, rows: Rows | None = None) -> None:
        """A plugin may have one score for all nodes. Its scores are those at `rows`, where these are given."""
        self._by_plugin = by_plugin
        self._rows = rows
        self.total = total

    @property
    def by_plugin(self) -> dict[str, Scores]:
        rows, entries = self._rows, len(self.total)
        return {
            name: for_each(scores, entries) if rows is None or isinstance(scores, int) else scores[rows]
            for name, scores in self._by_plugin.items()
        }

    def of(self, rows: Rows) -> ScoreTable:
        """The entries at some positions; plugins' are picked out when they are asked for."""
        return ScoreTable(self._by_plugin, self.total[rows], rows)

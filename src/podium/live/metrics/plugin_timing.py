"""Times plugins one by one while an attempt is sampled, and costs nothing while none is.

For the length of such an attempt each plugin's methods are covered by timed ones, set on the plugin itself, so that
whoever calls them, and how, need not know. What a plugin calls of its own is part of the call it was called with, and
who holds on to a timed method finds it a plain one afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from podium.framework.diagnosis import PostFilterResult
from podium.framework.status import Code, Status, Wait

METHODS = {
    "pre_enqueue": "PreEnqueue",
    "pre_filter": "PreFilter",
    "add_pod": "PreFilterExtensionAddPod",
    "remove_pod": "PreFilterExtensionRemovePod",
    "filter": "Filter",
    "filter_node": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "score_node": "Score",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "post_bind": "PostBind",
}
"""Methods that run while an attempt is under way, and their extension points. PreBind and Bind outlive it."""

Took = Callable[[str, str, Code, float], None]
"""(plugin, extension point, outcome, when it began)"""


class PluginTiming:
    def __init__(self, plugins: Iterable[Any], now: Callable[[], float], took: Took) -> None:
        self._now = now
        self._took = took
        self._plain = True  # no attempt is sampled, or a timed call is under way
        self._covers = [
            (plugin, {method: self._cover(plugin, method) for method in METHODS if _is_method(plugin, method)})
            for plugin in plugins
        ]

    def start(self) -> None:
        self._plain = False
        for plugin, covers in self._covers:
            plugin.__dict__.update(covers)

    def stop(self) -> None:
        self._plain = True
        for plugin, covers in self._covers:
            for method in covers:
                plugin.__dict__.pop(method, None)

    def _cover(self, plugin: Any, method: str) -> Callable[..., Any]:
        original, name, point, now = getattr(plugin, method), plugin.name, METHODS[method], self._now

        def timed(*args: Any) -> Any:
            if self._plain:
                return original(*args)
            self._plain = True
            began = now()
            code = Code.ERROR
            try:
                answer = original(*args)
                code = outcome(answer)
                return answer
            finally:
                self._plain = False
                self._took(name, point, code, began)

        return timed


def outcome(answer: Any) -> Code:
    """What a plugin's answer amounts to. One about many nodes is a success, whatever it says of them."""
    if isinstance(answer, Status):
        return answer.code
    if isinstance(answer, PostFilterResult):
        return Code.SUCCESS if answer.status is None else answer.status.code
    if isinstance(answer, Wait):
        return Code.WAIT
    return Code.UNSCHEDULABLE if isinstance(answer, str) or answer is False else Code.SUCCESS


def _is_method(plugin: Any, name: str) -> bool:
    """Whether the plugin's class has it, and the plugin itself has put nothing else in its place."""
    return hasattr(type(plugin), name) and name not in vars(plugin)

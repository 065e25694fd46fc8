"""What a plugin does wrong is on the terminal of `podium run` and `podium up`: one good sentence for each mistake.

Both run this very driver. What is wrong with a plugin before it runs is refused when it is loaded: see
tests/podium/framework/test_declarations.py and tests/together/cli/test_plugin_mistakes.py.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import numpy as np
import pytest

from podium.framework import Plugin, Verdict, Wait
from podium.framework.diagnosis import PostFilterResult
from podium.serving.log import LOG
from tests.podium.framework.runtimes import answering
from tests.podium.run.test_driver import fine, scheduling, tell, until
from tools.kit.builders import make_node, make_pod

POD = r"for pod default/p\d"
ON = rf"{POD} on node n\d"
WRONG = 'plugin "X" gave a wrong answer at'
EACH = "must give a whole number for each of 2 nodes"
RANGE = r"it must be from 0 to 100: give such a score, or set a normalizer"


def coroutine(_self: Plugin, *_args: Any) -> Any:
    """An answer that comes later, from a plugin that hides that it is async."""

    async def later() -> int:
        return 1

    return later()


LATE = r"got a coroutine: only bind and pre_bind may be async def"
MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"score_node": 0.5}, rf"{WRONG} Score {ON}: score_node must give a whole number, got 0.5 \(float\)"),
    ({"score_node": None}, rf"{WRONG} Score {ON}: score_node must give a whole number, got None"),
    ({"score_node": "best"}, rf"{WRONG} Score {ON}: score_node must give a whole number, got 'best' \(str\)"),
    ({"score_node": 101}, rf"{WRONG} Score {ON}: the invalid score 101; {RANGE}"),
    ({"score_node": coroutine}, rf"{WRONG} Score {ON}: score_node must give a whole number, {LATE}"),
    ({"score_node": ZeroDivisionError("1/0")}, rf'plugin "X" failed at Score {ON}: ZeroDivisionError: 1/0 \(.*\)'),
    ({"score": np.array([0, -1])}, rf"{WRONG} Score {ON}: the invalid score -1; {RANGE}"),
    ({"score": [1]}, rf"{WRONG} Score {POD}: score {EACH}, got int64 of shape \(1,\)"),
    ({"score": coroutine}, rf"{WRONG} Score {POD}: score {EACH}, {LATE}"),
    ({"score_node": 1, "normalize": [0.5, 1]}, rf"{WRONG} ScoreExtensionNormalize {POD}: normalize {EACH}, got fr.*"),
    ({"filter": [True]}, rf"{WRONG} Filter {POD}: filter must give .* bool for each of 2 nodes, got bool of shape .*"),
    ({"filter": [1, 0]}, rf"{WRONG} Filter {POD}: filter must give .* got int64 of shape \(2,\)"),
    ({"filter": Verdict(np.array([1, 1]), lambda _code: "no")}, rf"{WRONG} Filter {POD}: status_of\(1\) must .* str"),  # type: ignore[arg-type,return-value]
    ({"filter_node": 0}, rf"{WRONG} Filter {ON}: filter_node must give None, a bool, a reason or a Status, got 0 .*"),
    ({"filter_node": ""}, rf"{WRONG} Filter {ON}: filter_node must give the reason, or None .*; got an empty text"),
    ({"pre_filter": ["n1"]}, rf"{WRONG} PreFilter {POD}: it must give None, a Status or a set of node names, got .*"),
    ({"pre_enqueue": True}, rf"{WRONG} PreEnqueue {POD}: it must give None or a Status, got True \(bool\)"),
    (
        {"filter_node": False, "post_filter": PostFilterResult(None, "n1")},  # type: ignore[arg-type]
        rf"{WRONG} PostFilter {POD}: its PostFilterResult must have a Nomination .*",
    ),
    ({"pre_score": 1, "score_node": 1}, rf"{WRONG} PreScore {POD}: it must give None, SKIP or a Status, got 1 .*"),
    ({"reserve": False}, rf"{WRONG} Reserve {ON}: it must give None or a Status, got False \(bool\)"),
    ({"permit": 30}, rf"{WRONG} Permit {ON}: it must give None, a Status or Wait\(seconds\), got 30 \(int\)"),
    ({"permit": True}, rf"{WRONG} Permit {ON}: it must give None, a Status or Wait\(seconds\), got True \(bool\)"),
    ({"permit": Wait("1m")}, rf"{WRONG} Permit {ON}: Wait needs a number of seconds, at least 0, got '1m' .*"),  # type: ignore[arg-type]
    ({"pre_bind": "ok"}, rf"{WRONG} PreBind {ON}: it must give None or a Status, got 'ok' \(str\)"),
    ({"bind": "bound"}, rf"{WRONG} Bind {ON}: it must give None, SKIP or a Status, got 'bound' \(str\)"),
    ({"post_bind": KeyError("x")}, rf"plugin \"X\" failed at PostBind {ON}: KeyError: 'x' \(.*\)"),
    ({"observe": KeyError("x"), "filter_node": True}, rf"plugin \"X\" failed at Observe {POD}: KeyError: 'x' \(.*\)"),
]


@pytest.mark.parametrize(("answers", "sentence"), MISTAKES, ids=[f"{next(iter(a))}={a}"[:40] for a, _ in MISTAKES])
def test_a_mistake_of_a_plugin_is_said_once_with_plugin_point_pod_and_node(
    answers: dict[str, Any], sentence: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOG, "propagate", True)
    asked = {point: answer for point, answer in answers.items() if answer is not coroutine}
    late = dict.fromkeys((point for point, answer in answers.items() if answer is coroutine), coroutine)
    plugin = type("X", (answering("X", **asked),), late)

    async def main() -> None:
        async with scheduling(fine, plugin) as live:
            live.engine.intake.set(make_node("n1"))
            live.engine.intake.set(make_node("n2"))
            tell(live, make_pod("p1"), make_pod("p2"))
            live.informers._changed()
            await until(lambda: sum(live.plugin_failures.counts.values()) >= 2)

    with caplog.at_level(logging.INFO, logger="podium"):
        asyncio.run(main())
    (record,) = (each for each in caplog.records if "plugin" in each.getMessage())
    assert re.fullmatch(f"{sentence}; later ones of this kind are only counted", record.getMessage())
    assert record.levelname == "ERROR"
    wrong = record.getMessage().startswith(WRONG)
    frames = [] if record.exc_info is None else _files(record.exc_info[2])
    assert frames == ([] if wrong else ["runtimes.py"])


def _files(frames: Any) -> list[str]:
    found = []
    while frames is not None:
        found.append(frames.tb_frame.f_code.co_filename.rpartition("/")[2])
        frames = frames.tb_next
    return found

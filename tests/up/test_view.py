"""The live view fits its terminal and says what there is to say."""

import io
import re

import pytest
from rich.console import Console

from podium.engine.queue.scheduling_queue import Pending
from podium.framework.gang import GangCount
from podium.up.picture import NodeBar, Picture
from podium.up.pod_tracker import PodDecision
from podium.up.quotas import QuotaUse
from podium.up.view import BAR, bar, clock, draw, line

REFUSED = PodDecision(0.0, "shop/web", "", "0/3 nodes are available: " + "3 Insufficient cpu. " * 20)

CPU = 10**9
QUOTAS = [
    QuotaUse("team-a/quota", "cpu", 6 * CPU, 6 * CPU, 4 * CPU),
    QuotaUse("team-b/quota", "cpu", CPU, 6 * CPU, 4 * CPU),
]
GANGS = [GangCount("shop/training", 5, 4, 0), GangCount("shop/batch", 3, 3, 3)]


def picture(nodes: int = 3, decisions: int = 2) -> Picture:
    bars = [NodeBar(f"worker-{number}", "zone-a", 0.5, 0.95, 7, number == 1) for number in range(nodes)]
    said = [PodDecision(0.0, f"shop/web-{number}", "worker-1") for number in range(decisions)]
    return Picture(
        "http://127.0.0.1:7070", 75, bars, 40, 30, 4, 44, Pending(3, 2, 1, 0), [REFUSED], said, GANGS, QUOTAS
    )


def drawn(shown: Picture, *, width: int = 100, height: int = 30) -> list[str]:
    console = Console(width=width, height=height, record=True, file=io.StringIO(), force_terminal=True)
    console.print(draw(shown, height))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_nodes_queue_and_decisions_are_shown() -> None:
    text = "\n".join(drawn(picture()))
    assert "http://127.0.0.1:7070  1:15  3 nodes  40 pods  30 running  4 succeeded  44 placed" in text
    assert re.search(r"worker-0 +zone-a +cpu █{10}░{10}  50%  mem █{19}░  95%    7 pods\n", text)
    assert "worker-1" in text
    assert "cordoned" in text
    assert "waiting: 3 to be tried, 2 backing off, 1 fit nowhere" in text
    assert "gangs: 1 started, 1 waits: shop/training (0 of 5 have a node, 4 are there)" in text
    assert "quotas: team-a/quota 6 of 6 cpu (2 borrowed), team-b/quota 1 of 6 cpu" in text
    assert "placed shop/web-0 on worker-1" in text


def test_an_empty_queue_has_no_pods_in_it() -> None:
    assert "waiting: no pods" in drawn(picture()._replace(queue=Pending(0, 0, 0, 0)))


def test_a_pod_that_fits_nowhere_is_cut_at_the_end_of_the_line() -> None:
    lines = drawn(picture(), width=60)
    (found,) = [each for each in lines if each.startswith("no node shop/web  0/3 nodes")]
    assert len(found) <= 60


@pytest.mark.parametrize("height", [15, 24, 60])
@pytest.mark.parametrize("nodes", [1, 12, 500])
def test_the_view_is_never_taller_than_the_terminal(nodes: int, height: int) -> None:
    lines = drawn(picture(nodes, 50), width=150, height=height)
    assert len(lines) <= height
    if nodes == 500:
        assert any("more nodes" in each for each in lines)


@pytest.mark.parametrize(("share", "full"), [(-1.0, 0), (0.0, 0), (0.5, BAR // 2), (1.0, BAR), (7.0, BAR)])
def test_a_bar_is_always_as_wide(share: float, full: int) -> None:
    assert len(bar(share)) == BAR
    assert bar(share).count("█") == full


def test_an_hour_is_shown_as_one() -> None:
    assert clock(3675) == "1:01:15"


def test_a_decision_is_one_line_where_there_is_no_terminal() -> None:
    assert line(PodDecision(0.0, "a/b", "n")) == "placed a/b on n"
    assert line(PodDecision(0.0, "a/b", "", "no nodes")) == "no node for a/b: no nodes"

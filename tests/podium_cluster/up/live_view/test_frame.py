"""The live view fits every terminal, and no figure of a node is lost or cut at any size."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from podium_cluster.up.live_view.browsing import Browsing
from podium_cluster.up.live_view.frame import Size
from podium_cluster.up.live_view.rows import Section, SortBy, text_page
from tests.podium_cluster.up.live_view.pictures import TROUBLE, drawn, node, picture

FIGURES = re.compile(r"cpu (?:[█▏▎▍▌▋▊▉░]+ )? *\d+%  mem (?:[█▏▎▍▌▋▊▉░]+ )? *\d+% +\d+ pods")
SIZES = [Size(50, 15), Size(80, 24), Size(100, 30), Size(132, 24), Size(160, 24), Size(200, 50), Size(250, 60)]
NAMES = ["worker-{}", "ip-10-0-{}-123.eu-west-1.compute.internal", "{}"]


def browsings() -> st.SearchStrategy[Browsing]:
    needles = st.sampled_from(["", "worker-1", "shop", "nothing"])
    drawn_from = st.tuples(st.sampled_from(Section), st.integers(0, 600), st.sampled_from(SortBy), needles)
    return drawn_from.map(lambda each: Browsing(each[0], each[1], sort=each[2], needle=each[3]))


@settings(deadline=None, max_examples=200)
@given(
    st.integers(50, 250),
    st.integers(15, 60),
    st.integers(1, 600),
    st.sampled_from(NAMES),
    browsings(),
    st.floats(0, 12),
    st.booleans(),
)
def test_every_line_fits_and_every_node_shown_has_its_figures(
    width: int, height: int, nodes: int, name: str, browsing: Browsing, load: float, cordoned: bool
) -> None:
    shown = picture(nodes, name=name)
    shown.engine.nodes[0] = node(name.format(0), load, cordoned=cordoned)
    lines = drawn(shown, Size(width, height), browsing)
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width
    assert not re.search(r"\d…\d|%…|…%", "\n".join(lines))
    of_nodes = [line for line in lines if "cpu " in line and "  mem " in line and "─" not in line]
    for line in of_nodes:
        assert line.count("cpu ") == len(FIGURES.findall(line)), line
    assert of_nodes or browsing.needle


@pytest.mark.parametrize("size", SIZES)
def test_every_part_is_there_at_every_size(size: Size) -> None:
    text = "\n".join(drawn(picture(), size))
    for part in ("12 nodes ─", "waiting: 1 error, 1 held", " error ", "messages: 3 errors", "last placed ─"):
        assert part in text
    assert re.search(r"worker-0 .*cpu █.* +50%  mem █.* 95% +7 pods", text)
    assert "q or Ctrl-C end" in drawn(picture(), size)[-1]


def test_a_terminal_of_the_usual_size_shows_all_there_is() -> None:
    shown = picture()._replace(quotas=[], waiting=picture().waiting[:1])
    lines = drawn(shown._replace(engine=shown.engine._replace(gangs=[])), Size(80, 24), messages=[])
    assert lines[0] == "podium up  http://127.0.0.1:7070  1:15  12 nodes  1040 pods  1030 running"
    assert lines[1] == "export KUBECONFIG=/home/you/.local/state/podium/kubeconfig-7070"
    assert sum("worker-" in line and "  mem " in line for line in lines) == 12
    assert "waiting: 1 error" in "\n".join(lines)
    assert lines[-2] == " placed shop/web-4 on worker-1"


def test_gangs_and_quotas_have_a_line_each() -> None:
    text = "\n".join(drawn(picture(), Size(100, 30)))
    assert "gangs: 1 started, 1 waits: shop/training (0 of 5 have a node, 4 are there)" in text
    assert "quotas: team-a/quota 6 of 6 cpu (2 borrowed), team-b/quota 1 of 6 cpu" in text


def test_a_reason_is_cut_between_words_and_read_in_full_on_its_page() -> None:
    size, (pod,) = Size(60, 40), [each for each in picture().waiting if each.pod == "shop/web"]
    (found,) = [line for line in drawn(picture(), size) if line.startswith(" no node")]
    assert re.fullmatch(r" no node     shop/web  0/3 nodes are available: 3 …", found)
    page = drawn(picture(), size, Browsing(page=text_page("pod shop/web", pod.why)))
    assert " ".join(line.strip() for line in page[1:-1]).strip() == pod.why.strip()


def test_the_selected_row_is_among_those_that_are_shown() -> None:
    for place in (0, 250, 499):
        text = "\n".join(drawn(picture(500), Size(80, 24), Browsing(place=place)))
        assert f"▸worker-{place} " in text
        assert re.search(r" \d+–\d+ of 500 ──", text)


def test_nodes_that_one_column_cannot_hold_are_beside_each_other() -> None:
    lines = drawn(picture(30), Size(160, 24))
    assert any(len(FIGURES.findall(line)) == 2 for line in lines)


def test_nodes_are_there_while_the_scheduler_is_silent() -> None:
    shown = picture(silent=12.4)
    shown.engine.nodes[:] = [node("worker-0", None)]
    lines = drawn(shown, Size(80, 24))
    assert lines[1] == "no answer from the scheduler for 12 s: figures are from before"
    assert any(re.search(r"worker-0 .* \?  mem .* \? +\? pods", line) for line in lines)


def test_a_filter_counts_for_every_list() -> None:
    text = "\n".join(drawn(picture(), Size(80, 24), Browsing(needle="WORKER-11")))
    assert '1 node of 12, filter "WORKER-11"' in text
    assert "waiting: none of " in text
    assert "messages" not in text


def test_trouble_is_shown_with_its_count() -> None:
    text = "\n".join(drawn(picture(), Size(100, 30), messages=TROUBLE))
    assert 'error: plugin "T" failed at Score for pod shop/bad (t.py:4): ZeroDivisionError (×3)' in text


def test_a_cordoned_node_says_so() -> None:
    shown = picture()
    shown.engine.nodes[0] = node("worker-0", cordoned=True)
    assert any(re.search(r"worker-0 .* 7 pods cordoned", line) for line in drawn(shown, Size(80, 24)))


def test_a_filter_does_not_make_waiting_pods_disappear() -> None:
    lines = drawn(picture(3), Size(80, 24), Browsing(Section.WAITING, needle="worker-1"))
    assert any(line.startswith("── waiting: none of ") for line in lines)
    assert any(line.startswith("▸worker-1") for line in lines)

"""Keys move the selection, open pages, sort and filter."""

import pytest

from podium_cluster.up.live_view import keys
from podium_cluster.up.live_view.browsing import Browsing, Effect, press
from podium_cluster.up.live_view.keys import KeyReader
from podium_cluster.up.live_view.rows import Section, SortBy, rows_of, text_page
from tests.podium_cluster.up.live_view.pictures import TROUBLE, picture

ROWS = rows_of(picture(3), TROUBLE, SortBy.NAME, "")
LONG = text_page("t", "\n".join(map(str, range(100))))


def after(*pressed: str, start: Browsing | None = None) -> tuple[Browsing, Effect]:
    browsing, effect = Browsing() if start is None else start, Effect.NOTHING
    for key in pressed:
        browsing, effect = press(browsing, key, ROWS, 20, 80)
    return browsing, effect


@pytest.mark.parametrize(
    ("pressed", "section", "name"),
    [
        ([keys.DOWN], Section.NODES, "worker-1"),
        (["j", "j", "k"], Section.NODES, "worker-1"),
        ([keys.UP], Section.NODES, ""),
        ([keys.END], Section.NODES, "worker-2"),
        ([keys.DOWN] * 3, Section.WAITING, "shop/bad"),
        ([keys.TAB, keys.UP], Section.NODES, "worker-2"),
        ([keys.TAB, keys.TAB], Section.MESSAGES, TROUBLE[0].headline),
        ([keys.BACK_TAB], Section.PLACED, "shop/web-0"),
        ([keys.BACK_TAB, keys.PAGE_DOWN], Section.PLACED, "shop/web-10"),
        ([keys.BACK_TAB, keys.END, keys.DOWN], Section.PLACED, "shop/web-39"),
    ],
)
def test_the_selection_moves_through_the_lists(pressed: list[str], section: Section, name: str) -> None:
    browsing, effect = after(*pressed)
    assert (browsing.section, browsing.name, effect) == (section, name, Effect.NOTHING)


def test_the_selection_stays_on_its_row_when_others_go() -> None:
    browsing, _ = after(keys.DOWN, keys.DOWN)
    fewer = ROWS.nodes[1:]
    assert fewer[browsing.selected(fewer)].name == "worker-2"
    assert browsing.selected(fewer[:1]) == 0


@pytest.mark.parametrize(
    ("pressed", "effect"),
    [
        ("q", Effect.END),
        (keys.END_OF_INPUT, Effect.END),
        ("?", Effect.HELP),
        (keys.ENTER, Effect.OPEN),
        ("x", Effect.NOTHING),
    ],
)
def test_keys_ask_for_something(pressed: str, effect: Effect) -> None:
    assert after(pressed)[1] is effect


def test_a_filter_is_typed_kept_and_cleared() -> None:
    typing, effect = after("/", "q", "p", "x", keys.BACKSPACE)
    assert (typing.needle, typing.typing, effect) == ("qp", True, Effect.NOTHING)
    kept, _ = after(keys.ENTER, start=typing)
    assert (kept.needle, kept.typing) == ("qp", False)
    assert after(keys.ESCAPE, start=kept)[0].needle == ""


def test_nodes_are_sorted_the_fullest_first() -> None:
    assert [after(*"s" * times)[0].sort for times in range(5)] == [*SortBy, SortBy.NAME]
    shown = picture(3)
    shown.engine.nodes[1] = shown.engine.nodes[1]._replace(cpu=0.9, pods=None)
    assert [each.name for each in rows_of(shown, [], SortBy.CPU, "").nodes] == ["worker-1", "worker-0", "worker-2"]
    assert [each.name for each in rows_of(shown, [], SortBy.PODS, "").nodes] == ["worker-0", "worker-2", "worker-1"]


@pytest.mark.parametrize(
    ("pressed", "top"),
    [([keys.UP], 0), ([keys.DOWN, "j"], 2), ([keys.PAGE_DOWN], 19), ([keys.END], 80), ([keys.END, keys.DOWN, "k"], 79)],
)
def test_a_page_is_scrolled_to_its_end_and_no_further(pressed: list[str], top: int) -> None:
    assert after(*pressed, start=Browsing(page=LONG))[0].top == top


@pytest.mark.parametrize("key", [keys.ESCAPE, "q"])
def test_a_page_is_left_without_ending_the_cluster(key: str) -> None:
    browsing, effect = after(key, start=Browsing(page=LONG, top=5))
    assert (browsing.page, browsing.top, effect) == (None, 0, Effect.NOTHING)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ([b"q"], ["q"]),
        ([b"\x1b[A\x1bOB\x1b[6~"], [keys.UP, keys.DOWN, keys.PAGE_DOWN]),
        ([b"\x1b", b"[", b"5~x"], [keys.PAGE_UP, "x"]),
        ([b"\x1b[1;5C", b"\x1b[200~", b"y"], ["y"]),
        ([b"\r\n\t\x1b[Z\x7f\x0c"], [keys.ENTER, keys.ENTER, keys.TAB, keys.BACK_TAB, keys.BACKSPACE, keys.REDRAW]),
        ([b"\xc3", b"\xa9\xff"], ["é", "�"]),
        ([b"\x1bq"], [keys.ESCAPE, "q"]),
    ],
)
def test_bytes_are_read_as_keys(sent: list[bytes], read: list[str]) -> None:
    reader = KeyReader()
    assert [key for data in sent for key in reader.feed(data)] == read
    assert not reader.unfinished


def test_escape_alone_is_a_key_once_nothing_follows() -> None:
    reader = KeyReader()
    assert (reader.feed(b"\x1b"), reader.unfinished, reader.finish(), reader.unfinished) == ([], True, ["Esc"], False)


def test_a_list_that_becomes_empty_gives_the_selection_to_one_that_is_not() -> None:
    waiting, _ = after(keys.TAB)
    only_nodes = rows_of(picture(3), TROUBLE, SortBy.NAME, "worker-1")
    assert not only_nodes.waiting
    opening, effect = press(waiting, keys.ENTER, only_nodes, 20, 80)
    assert (opening.section, opening.selected(only_nodes.nodes), effect) == (Section.NODES, 0, Effect.OPEN)
    nothing = rows_of(picture(3), TROUBLE, SortBy.NAME, "nowhere to be found")
    assert press(waiting, keys.ENTER, nothing, 20, 80)[1] is Effect.NOTHING

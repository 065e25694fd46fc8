import pytest

from podium.cli.options import Output
from podium.cli.show import podium, rejections, show
from podium.engine.explain import Eviction, Explanation, NodeAnswer, Outcome


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def scored(name: str, total: int) -> NodeAnswer:
    return NodeAnswer(name, True, scores={"P": total}, total=total)


def refused(name: str, plugin: str, *reasons: str) -> NodeAnswer:
    return NodeAnswer(name, False, plugin, list(reasons))


def explanation(*nodes: NodeAnswer, selected: str | None = None) -> Explanation:
    outcome = Outcome.FITS if selected else Outcome.FITS_NOWHERE
    return Explanation("default/web", "default-scheduler", selected, None, None, list(nodes), outcome=outcome)


def shown(what: Explanation, capsys: pytest.CaptureFixture[str]) -> str:
    show(what, Output.TABLE)
    return capsys.readouterr().out


def test_of_equally_good_nodes_the_chosen_one_comes_first() -> None:
    nodes = [scored("a", 5), scored("b", 7), scored("c", 7), scored("d", 6)]
    assert [node.name for node in podium(explanation(*nodes, selected="c"))] == ["c", "b", "d"]


def test_a_node_with_several_reasons_is_not_grouped_with_one_that_has_only_the_first() -> None:
    nodes = [refused("a", "P", "x", "y"), refused("b", "P", "x"), refused("c", "P", "x")]
    assert rejections(nodes) == [("P", "x", ["b", "c"]), ("P", "x, y", ["a"])]


def test_long_lists_of_nodes_and_victims_are_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    what = explanation(*(refused(f"n{i}", "P", "x") for i in range(1, 8)))
    what.preemption = Eviction("n1", [f"default/v{i}" for i in range(1, 7)])
    out = shown(what, capsys)
    assert "n1, n2, n3, n4 and 3 more" in out
    assert "by evicting default/v1, default/v2, default/v3, default/v4 and 2 more." in out


def test_square_brackets_in_reasons_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did not like [bold]it[/bold] [x]" in shown(
        explanation(refused("n", "P", "did not like [bold]it[/bold] [x]")), capsys
    )


def test_plugins_that_gave_the_shown_nodes_nothing_have_no_column(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [NodeAnswer(name, True, scores={"Zero": 0, "Some": 3}, total=3) for name in ("a", "b")]
    words = shown(explanation(*nodes, selected="a"), capsys).split()
    assert "Some" in words
    assert "Zero" not in words


def test_long_node_names_are_kept_whole_or_folded_but_never_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    name = "ip-10-0-12-{}.eu-central-1.compute.internal"
    out = shown(explanation(scored(name.format(1), 1), scored(name.format(2), 2), selected=name.format(2)), capsys)
    assert "…" not in out
    assert all(len(line) <= 60 for line in out.splitlines()[1:])

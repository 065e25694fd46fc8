import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.config.defaults import DEFAULT_PLUGINS, merge_plugins
from podium.config.expand import expand, score_weights
from podium.config.points import Point
from podium.config.types import PluginEntry, Plugins
from tests.podium.config.stand_ins import IN_TREE, REGISTRY, plugin, registry_of
from tests.podium.config.test_defaults import plugin_set

DEFAULT_SCORE = [
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodeResourcesFit", 1),
    ("VolumeBinding", 1),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
]
MINE = registry_of(*IN_TREE, plugin("My", "filter score"), plugin("My2", "filter"))


def merged(**custom: str) -> Plugins:
    """`merged(score="A -B")`: A enabled and B disabled at score, laid over the defaults."""
    sets = {
        key: plugin_set(
            " ".join(word for word in words.split() if word[0] != "-"),
            " ".join(word[1:] for word in words.split() if word[0] == "-"),
        )
        for key, words in custom.items()
    }
    return merge_plugins(DEFAULT_PLUGINS, Plugins.from_keys(sets))


def weighted(plugins: Plugins) -> list[tuple[str, int]]:
    weights = score_weights(Point.SCORE, plugins, MINE)
    return [(name, weights[name]) for name in expand(plugins, MINE).plugins[Point.SCORE]]


def test_the_defaults_run_at_every_point_in_the_order_of_the_table() -> None:
    filled, refusals = expand(merged(), REGISTRY)
    assert refusals == []
    for point in Point:
        assert filled[point] == tuple(each.name for each in IN_TREE if point in each.points)
    assert weighted(merged()) == DEFAULT_SCORE


def test_a_new_weight_a_disabled_score_and_plugins_of_ones_own() -> None:
    plugins = merged(multiPoint="NodeAffinity:7 My:5", score="-ImageLocality", filter="My2")
    changed = [(name, 7 if name == "NodeAffinity" else weight) for name, weight in DEFAULT_SCORE[:-1]]
    assert weighted(plugins) == [*changed, ("My", 5)]
    default_filters = expand(merged(), MINE).plugins[Point.FILTER]
    assert expand(plugins, MINE).plugins[Point.FILTER] == (*default_filters, "My", "My2")


def test_one_scorer_only_leaves_the_other_points_alone() -> None:
    plugins = merged(score="-* NodeResourcesFit:2")
    assert weighted(plugins) == [("NodeResourcesFit", 2)]
    assert expand(plugins, MINE).plugins[Point.PRE_SCORE] == expand(merged(), MINE).plugins[Point.PRE_SCORE]


def test_a_plugin_named_at_a_point_and_in_multi_point_runs_first_there() -> None:
    plugins = merged(score="ImageLocality:9 My:4 NodeAffinity")
    rest = [pair for pair in DEFAULT_SCORE if pair[0] not in ("ImageLocality", "NodeAffinity")]
    assert weighted(plugins) == [("ImageLocality", 9), ("NodeAffinity", 1), *rest, ("My", 4)]


def test_enabled_at_a_point_wins_over_disabled_there() -> None:
    plugins = merged(score="NodeAffinity:8 -NodeAffinity")
    rest = [pair for pair in DEFAULT_SCORE if pair[0] != "NodeAffinity"]
    assert weighted(plugins) == [*rest, ("NodeAffinity", 8)]


def test_disabled_in_multi_point_is_gone_everywhere_but_where_it_is_named() -> None:
    plugins = merged(multiPoint="-NodeResourcesFit", filter="NodeResourcesFit")
    filled = expand(plugins, MINE).plugins
    assert filled[Point.FILTER][-1] == "NodeResourcesFit"
    assert "NodeResourcesFit" not in filled[Point.SCORE] + filled[Point.PRE_FILTER] + filled[Point.PRE_SCORE]


def test_a_star_in_multi_point_leaves_only_what_is_named_there() -> None:
    plugins = merged(multiPoint="-* PrioritySort DefaultBinder My:2")
    filled = expand(plugins, MINE).plugins
    assert {point: names for point, names in filled.items() if names} == {
        "queueSort": ("PrioritySort",),
        "bind": ("DefaultBinder",),
        "filter": ("My",),
        "score": ("My",),
    }


def test_a_weight_of_zero_counts_as_one() -> None:
    assert score_weights(Point.SCORE, merged(score="My:0"), MINE)["My"] == 1


@pytest.mark.parametrize(
    ("custom", "key", "position", "message"),
    [
        ({"score": "Nobody"}, "score", 0, 'ScorePlugin "Nobody" does not exist'),
        ({"queueSort": "My Nobody"}, "queueSort", 1, 'QueueSortPlugin "Nobody" does not exist'),
        ({"permit": "My"}, "permit", 0, 'plugin "My" does not extend PermitPlugin plugin'),
        ({"filter": "My My2 My"}, "filter", 2, 'plugin "My" already registered as "FilterPlugin"'),
        ({"multiPoint": "Nobody"}, "multiPoint", 20, 'PreFilterPlugin "Nobody" does not exist'),
        ({"multiPoint": "Nobody", "preFilter": "-*"}, "multiPoint", 20, 'FilterPlugin "Nobody" does not exist'),
        ({"multiPoint": "My My"}, "multiPoint", 21, 'plugin "My" already registered as "FilterPlugin"'),
        ({"multiPoint": "My My", "filter": "My"}, "multiPoint", 21, 'plugin "My" already registered as "ScorePlugin"'),
    ],
)
def test_what_cannot_run_is_refused_at_its_entry(custom: dict[str, str], key: str, position: int, message: str) -> None:
    refusals = expand(merged(**custom), MINE).refusals
    assert (key, position, message) in [(each.key, each.position, each.message) for each in refusals]


def test_named_twice_in_multi_point_is_no_harm_where_the_plugin_never_arrives_through_it() -> None:
    plugins = merged(multiPoint="My My", filter="My", score="-My")
    assert expand(plugins, MINE).refusals == []


def test_weights_that_could_overflow_a_score_are_refused() -> None:
    most = (2**63 - 1) // 100
    only = {"multi_point": plugin_set()}
    assert score_weights(Point.SCORE, Plugins(**only, score=plugin_set(f"My:{most}")), MINE) == {"My": most}
    with pytest.raises(OverflowError, match="total score of Score plugins could overflow"):
        score_weights(Point.SCORE, Plugins(**only, score=plugin_set(f"My:{most} ImageLocality:1")), MINE)


POOL = registry_of(
    plugin("A", "filter score"), plugin("B", "filter"), plugin("C", "score"), plugin("D", "filter score")
)
NAMES = st.lists(st.sampled_from("ABCD"), unique=True)


@given(own=NAMES, disabled=st.lists(st.sampled_from("ABCD*"), unique=True), multi_point=NAMES)
def test_the_order_at_a_point_is_overrides_then_multi_point_then_the_rest(
    own: list[str], disabled: list[str], multi_point: list[str]
) -> None:
    def rank(name: str) -> tuple[int, int]:
        if name in own:
            return (0 if name in through else 2, own.index(name))
        return (1, multi_point.index(name))

    plugins = Plugins(
        score=plugin_set(" ".join(own), " ".join(disabled)), multi_point=plugin_set(" ".join(multi_point))
    )
    through = {each for each in multi_point if "score" in POOL[each].points} - set(disabled)
    if "*" in disabled:
        through = set()
    filled = expand(plugins, POOL).plugins[Point.SCORE]
    assert list(filled) == sorted({*own, *through}, key=rank)


def test_the_default_set_has_the_weights_of_the_table() -> None:
    weights = {each.name: each.weight for each in DEFAULT_PLUGINS.multi_point.enabled if each.weight is not None}
    assert weights == {name: weight for name, weight in DEFAULT_SCORE if name != "VolumeBinding"}
    assert PluginEntry(name="VolumeBinding") in DEFAULT_PLUGINS.multi_point.enabled

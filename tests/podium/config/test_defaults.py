from hypothesis import given
from hypothesis import strategies as st

from podium.config.defaults import merge_plugin_set, merge_plugins
from podium.config.types import PluginEntry, Plugins, PluginSet


def plugins(*entries: str) -> tuple[PluginEntry, ...]:
    """`plugins("A", "B:3")` → A without a weight, B with weight 3."""
    split = (entry.partition(":") for entry in entries)
    return tuple(PluginEntry(name=name, weight=int(weight) if weight else None) for name, _, weight in split)


def plugin_set(enabled: str = "", disabled: str = "") -> PluginSet:
    return PluginSet(enabled=plugins(*enabled.split()), disabled=plugins(*disabled.split()))


DEFAULT = plugin_set("A:3 B C")


def test_without_a_custom_set_the_defaults_stay_as_they_are() -> None:
    assert merge_plugin_set(DEFAULT, plugin_set()) == DEFAULT


def test_a_custom_plugin_comes_after_the_defaults() -> None:
    assert merge_plugin_set(DEFAULT, plugin_set("My:5 Other")).enabled == plugins("A:3", "B", "C", "My:5", "Other")


def test_a_default_that_is_enabled_again_takes_the_new_weight_and_keeps_its_position() -> None:
    assert merge_plugin_set(DEFAULT, plugin_set("B:7 My")).enabled == plugins("A:3", "B:7", "C", "My")


def test_a_disabled_default_goes_and_the_name_is_remembered() -> None:
    merged = merge_plugin_set(DEFAULT, plugin_set(disabled="B:9"))
    assert merged == plugin_set("A:3 C", disabled="B")


def test_disabling_and_enabling_a_default_moves_it_to_the_end() -> None:
    assert merge_plugin_set(DEFAULT, plugin_set("My A", disabled="A")).enabled == plugins("B", "C", "My", "A")


def test_a_star_disables_all_defaults_but_nothing_custom() -> None:
    assert merge_plugin_set(DEFAULT, plugin_set("C My", disabled="*")) == plugin_set("C My", disabled="*")


def test_what_the_defaults_disable_stays_disabled_after_the_custom_names() -> None:
    merged = merge_plugin_set(plugin_set("A B", disabled="B"), plugin_set(disabled="C"))
    assert merged == plugin_set("A", disabled="C B")


def test_a_custom_name_given_twice_stays_twice() -> None:
    assert merge_plugin_set(DEFAULT, plugin_set("B:1 B:2")).enabled == plugins("A:3", "B:2", "C", "B:1")


def test_each_extension_point_is_merged_with_its_own_defaults() -> None:
    merged = merge_plugins(Plugins(multi_point=DEFAULT), Plugins(score=plugin_set("A"), filter=plugin_set("", "*")))
    assert merged == Plugins(multi_point=DEFAULT, score=plugin_set("A"), filter=plugin_set("", "*"))


NAMES = st.sampled_from("ABCDEFG")
ENTRIES = st.builds(PluginEntry, name=NAMES, weight=st.none() | st.integers(0, 9))
DEFAULT_SETS = st.lists(ENTRIES, unique_by=lambda plugin: plugin.name, max_size=6)
DISABLED = st.lists(st.sampled_from("ABCDEFG*"), max_size=4)


def oracle(default: list[PluginEntry], enabled: list[PluginEntry], disabled: set[str]) -> list[PluginEntry]:
    """The same rule told backwards: strike defaults out, then let each custom entry, last first, look for its place."""
    result: list[PluginEntry] = [] if "*" in disabled else [plugin for plugin in default if plugin.name not in disabled]
    replaced: set[str] = set()
    rest: list[PluginEntry] = []
    for plugin in reversed(enabled):
        spots = [i for i, each in enumerate(result) if each.name == plugin.name]
        if spots and plugin.name not in replaced:
            result[spots[0]] = plugin
            replaced.add(plugin.name)
        else:
            rest.insert(0, plugin)
    return result + rest


@given(DEFAULT_SETS, st.lists(ENTRIES, max_size=6), DISABLED, DISABLED)
def test_merging_agrees_with_the_rule_told_differently(
    default: list[PluginEntry], enabled: list[PluginEntry], disabled: list[str], disabled_by_default: list[str]
) -> None:
    merged = merge_plugin_set(
        PluginSet(enabled=tuple(default), disabled=plugins(*disabled_by_default)),
        PluginSet(enabled=tuple(enabled), disabled=plugins(*disabled)),
    )
    assert list(merged.enabled) == oracle(default, enabled, {*disabled, *disabled_by_default})


@given(DEFAULT_SETS, st.lists(ENTRIES, unique_by=lambda plugin: plugin.name, max_size=6), DISABLED)
def test_merging_keeps_the_order_of_defaults_invents_nothing_and_repeats_nothing(
    default: list[PluginEntry], enabled: list[PluginEntry], disabled: list[str]
) -> None:
    custom = PluginSet(enabled=tuple(enabled), disabled=plugins(*disabled))
    merged = merge_plugin_set(PluginSet(enabled=tuple(default)), custom)
    names = [plugin.name for plugin in merged.enabled]
    asked_for = [plugin.name for plugin in enabled]
    kept = [plugin.name for plugin in default if plugin.name not in disabled and "*" not in disabled]

    assert len(names) == len(set(names))
    assert set(names) == {*kept, *asked_for}
    assert names[: len(kept)] == kept
    assert names[len(kept) :] == [name for name in asked_for if name not in kept]
    assert set(enabled) <= set(merged.enabled)


@given(DEFAULT_SETS, st.lists(ENTRIES, unique_by=lambda plugin: plugin.name, max_size=6), DISABLED)
def test_merging_the_result_again_changes_nothing(
    default: list[PluginEntry], enabled: list[PluginEntry], disabled: list[str]
) -> None:
    defaults = PluginSet(enabled=tuple(default))
    once = merge_plugin_set(defaults, PluginSet(enabled=tuple(enabled), disabled=plugins(*disabled)))
    assert merge_plugin_set(defaults, once) == once

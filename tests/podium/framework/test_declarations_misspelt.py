"""Plugins whose methods look like the contract's, but are none."""

import pytest

from podium.framework import Plugin
from podium.framework.declarations import misspelt
from podium.plugins import PluginLoadError, load_registry

HELPERS = ("points_of", "score_table", "bindings", "_scores", "rooms")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("scor_node", "score_node"),
        ("preFilter", "pre_filter"),
        ("filter_nodes", "filter_node"),
        ("unreserved", "unreserve"),
        ("normalise", "normalize"),
        ("depend_on", "depends_on"),
        ("answerKey", "answer_key"),
        ("resource", "resources"),
    ],
)
def test_a_name_that_is_nearly_one_of_the_contract_is_named_with_what_was_meant(written: str, meant: str) -> None:
    plugin = type("Mine", (Plugin,), {written: lambda *_args: None})
    (sentence,) = misspelt(plugin)
    assert f'"{written}"' in sentence
    assert f"did you mean {meant}?" in sentence


def test_other_helpers_are_the_plugins_own_business() -> None:
    assert list(misspelt(type("Mine", (Plugin,), {name: lambda *_args: None for name in HELPERS}))) == []


def test_no_plugin_of_ours_has_such_a_name() -> None:
    assert {name: list(misspelt(plugin)) for name, plugin in load_registry().items() if list(misspelt(plugin))} == {}


class Typo(Plugin):
    def scor_node(self, _cycle: object, _node: object) -> int:
        return 0


def test_such_a_plugin_is_refused_at_the_start() -> None:
    with pytest.raises(PluginLoadError, match='"scor_node" is no method of a plugin: did you mean score_node'):
        load_registry(["tests.podium.framework.test_declarations_misspelt:Typo"])

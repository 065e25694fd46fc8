"""Plugins that declare what cannot be meant are refused when they are loaded, or when they are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.framework import Plugin, PluginError, Scope
from podium.framework.declarations import wrong_declarations
from podium.plugins import PluginLoadError, load_registry
from tests.podium.framework.runtimes import make_runtime
from tools.kit.builders import make_cluster, make_node

SCORES = "    def score_node(self, cycle, node):\n        return 0\n"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (f"    Args = {{'a': 1}}\n{SCORES}", "Args is {'a': 1} (dict): write a class of fields"),
        (f"    @dataclass\n    class Args:\n        a: int = 1\n{SCORES}", "Args is the class Args: write a class"),
        (f"    normalizer = 'reversed'\n{SCORES}", "normalizer is 'reversed' (str): write Normalizer.DEFAULT or"),
        (f"    filter_scope = 'node'\n{SCORES}", "filter_scope is 'node' (str): write Scope.NODE, Scope.TOTALS"),
        (f"    score_scope = 0\n{SCORES}", "score_scope is 0 (int): write Scope.NODE"),
        (f"    resources = 'quotas.shop/v1'\n{SCORES}", "resources is 'quotas.shop/v1' (str): write a tuple"),
        (f"    reason = 3\n{SCORES}", "reason is 3 (int): write a text"),
        ("    async def score_node(self, cycle, node):\n        return 0\n", "score_node is async def: write def"),
        ("    async def less(self, a, b):\n        return True\n", "less is async def: write def"),
        ("    limit = 3\n", "it has no method of an extension point and does nothing: write one"),
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused_when_the_plugin_is_loaded(
    tmp_path: Path, body: str, sentence: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"from dataclasses import dataclass\nfrom podium import Plugin\nclass Mine(Plugin):\n{body}")
    with pytest.raises(PluginLoadError) as error:
        load_registry([str(file)])
    assert str(error.value).startswith(f"--plugin {file}: {sentence}")


def test_what_init_sets_is_checked_when_the_plugin_is_made() -> None:
    class Mine(Plugin):
        def __init__(self, args: Any, handle: Any) -> None:
            super().__init__(args, handle)
            self.score_scope = "node"  # type: ignore[assignment]

        def score_node(self, _cycle: Any, _node: Any) -> int:
            return 0

    with pytest.raises(PluginError, match=r"""^initializing plugin "Mine": score_scope is 'node'"""):
        make_runtime(make_cluster([make_node("n1")]), Mine)


def test_a_scope_may_depend_on_the_arguments_and_binding_may_wait() -> None:
    class Mine(Plugin):
        @property
        def score_scope(self) -> Scope:  # type: ignore[override]
            return Scope.NODE

        def score_node(self, _cycle: Any, _node: Any) -> int:
            return 0

        async def pre_bind(self, _cycle: Any, _node: str) -> None: ...

        async def bind(self, _cycle: Any, _node: str) -> None: ...

    assert list(wrong_declarations(Mine)) == []
    make_runtime(make_cluster([make_node("n1")]), Mine)


def test_a_file_may_have_a_base_class_without_methods(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"from podium import Plugin\nclass Base(Plugin):\n    pass\nclass Mine(Base):\n{SCORES}")
    registry = load_registry([str(file)])
    assert "Mine" in registry
    assert "Base" not in registry


def test_no_plugin_of_ours_declares_such_a_thing() -> None:
    assert [each for plugin in load_registry().values() for each in wrong_declarations(plugin)] == []

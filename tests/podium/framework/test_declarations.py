"""Plugins that declare what cannot be meant are refused when they are loaded, or when they are made.

Plugins whose methods look like the contract's, but are none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.framework import DependsOn, NodePart, Plugin, PluginError
from podium.framework.declarations import misspelt, wrong_declarations
from podium.plugins import PluginLoadError, load_registry
from tests.podium.framework.runtimes import make_runtime
from tools.kit.builders import make_cluster, make_node

IMPORTS = """
from dataclasses import dataclass
from podium import DependsOn, Plugin, Pod
from podium.kube import PriorityClass
"""
SCORES = "    def score_node(self, cycle, node):\n        return 0\n"
HELPERS = ("points_of", "score_table", "bindings", "_scores", "rooms")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (f"    Args = {{'a': 1}}\n{SCORES}", "Args is {'a': 1} (dict): write a class of fields"),
        (f"    @dataclass\n    class Args:\n        a: int = 1\n{SCORES}", "Args is the class Args: write a class"),
        (f"    normalizer = 'reversed'\n{SCORES}", "normalizer is 'reversed' (str): write Normalizer.DEFAULT or"),
        (f"    depends_on = 'node'\n{SCORES}", "depends_on is 'node' (str): write DependsOn(node=…"),
        (
            f"    depends_on = DependsOn(node=0)\n{SCORES}",
            "depends_on.node is 0 (int): write NodePart.OBJECT, NodePart.",
        ),
        (f"    depends_on = DependsOn(claims='no')\n{SCORES}", "depends_on.claims is 'no' (str): write True or False"),
        (f"    depends_on = DependsOn(kinds=PriorityClass)\n{SCORES}", "depends_on.kinds is <class 'podiu"),
        (
            f"    depends_on = DependsOn(kinds=(dict,))\n{SCORES}",
            "depends_on.kinds: <class 'dict'> is no kind of podium.",
        ),
        (
            f"    depends_on = DependsOn(kinds=(Pod,))\n{SCORES}",
            "depends_on.kinds: Pod is not named there; `node` says",
        ),
        (f"    depends_on = property(lambda self: 1)\n{SCORES}", "depends_on is <property"),
        (f"    async def answer_key(self, pod):\n        return ()\n{SCORES}", "answer_key is async def: write def"),
        (f"    resources = 'quotas.shop/v1'\n{SCORES}", "resources is 'quotas.shop/v1' (str): write a tuple"),
        (f"    reason = 3\n{SCORES}", "reason is 3 (int): write a text"),
        ("    async def score_node(self, cycle, node):\n        return 0\n", "score_node is async def: write def"),
        ("    async def less(self, a, b):\n        return True\n", "less is async def: write def"),
        (
            "    def score_node(self, node):\n        return 0\n",
            "score_node(self, node) cannot be called: write score_node(self, cycle, node)",
        ),
        (
            "    def filter(self, cycle, nodes, more):\n        return None\n",
            "filter(self, cycle, nodes, more) cannot be called: write filter(self, cycle, nodes)",
        ),
        ("    limit = 3\n", "it has no method of an extension point and does nothing: write one"),
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused_when_the_plugin_is_loaded(
    tmp_path: Path, body: str, sentence: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"{IMPORTS}\nclass Mine(Plugin):\n{body}")
    with pytest.raises(PluginLoadError) as error:
        load_registry([str(file)])
    assert str(error.value).startswith(f"--plugin {file}: {sentence}")


def test_what_init_sets_is_checked_when_the_plugin_is_made() -> None:
    class Mine(Plugin):
        def __init__(self, args: Any, handle: Any) -> None:
            super().__init__(args, handle)
            self.depends_on = "node"  # type: ignore[assignment]

        def score_node(self, _cycle: Any, _node: Any) -> int:
            return 0

    with pytest.raises(PluginError, match=r"""^initializing plugin "Mine": depends_on is 'node'"""):
        make_runtime(make_cluster([make_node("n1")]), Mine)


def test_what_it_depends_on_may_follow_from_the_arguments_and_binding_may_wait() -> None:
    class Mine(Plugin):
        def __init__(self, args: Any, handle: Any) -> None:
            super().__init__(args, handle)
            self.depends_on = DependsOn(node=NodePart.OBJECT)

        def score_node(self, _cycle: Any, _node: Any) -> int:
            return 0

        async def pre_bind(self, _cycle: Any, _node: str) -> None: ...

        async def bind(self, _cycle: Any, _node: str) -> None: ...

    assert list(wrong_declarations(Mine)) == []
    runtime = make_runtime(make_cluster([make_node("n1")]), Mine)
    assert runtime.scores[0].node_part == NodePart.OBJECT


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("filter_scope = 'NODE'", "filter_scope: no longer read; write depends_on = DependsOn(node=NodePart.OBJECT)"),
        ("score_scope = 1", "score_scope: no longer read; write depends_on = DependsOn(node=NodePart.TOTALS)"),
        (
            "filter_scope = 0\n    score_scope = 2\n    sees_claims = False",
            "filter_scope, score_scope, sees_claims: no longer read; "
            "write depends_on = DependsOn(node=NodePart.PODS, claims=False)",
        ),
        ("looks_at = ()", "looks_at: no longer read; write depends_on = DependsOn(kinds=())"),
        (
            "looks_at = (PriorityClass,)",
            "looks_at: no longer read; write depends_on = DependsOn(kinds=(PriorityClass,))",
        ),
        ("def watermark(self, pod): ...", "watermark: no longer read; write def answer_key(self, pod)"),
        (
            "def sign_pod(self, pod): ...",
            "sign_pod: no longer read; delete what signs pods",
        ),
        ("signs_pods = False", "signs_pods: no longer read; delete what signs pods"),
    ],
)
def test_an_attribute_that_depends_on_has_replaced_is_refused_with_what_to_write(
    tmp_path: Path, body: str, sentence: str
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"{IMPORTS}\nclass Mine(Plugin):\n    {body}\n{SCORES}")
    with pytest.raises(PluginLoadError) as error:
        load_registry([str(file)])
    assert str(error.value).startswith(f"--plugin {file}: {sentence}")


def test_an_old_attribute_that_init_sets_is_refused_too() -> None:
    class Mine(Plugin):
        def __init__(self, args: Any, handle: Any) -> None:
            super().__init__(args, handle)
            self.sees_claims = False

        def score_node(self, _cycle: Any, _node: Any) -> int:
            return 0

    with pytest.raises(PluginError, match=r"sees_claims: no longer read; write depends_on = DependsOn\(claims=False\)"):
        make_runtime(make_cluster([make_node("n1")]), Mine)


def test_the_name_of_old_scopes_says_what_to_import(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"from podium import Plugin, Scope\nclass Mine(Plugin):\n    filter_scope = Scope.NODE\n{SCORES}")
    with pytest.raises(PluginLoadError, match=r"podium\.Scope is gone: import DependsOn and NodePart"):
        load_registry([str(file)])


def test_a_file_may_have_a_base_class_without_methods(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"from podium import Plugin\nclass Base(Plugin):\n    pass\nclass Mine(Base):\n{SCORES}")
    registry = load_registry([str(file)])
    assert "Mine" in registry
    assert "Base" not in registry


def test_no_plugin_of_ours_declares_such_a_thing() -> None:
    assert [each for plugin in load_registry().values() for each in wrong_declarations(plugin)] == []


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
        load_registry(["tests.podium.framework.test_declarations:Typo"])

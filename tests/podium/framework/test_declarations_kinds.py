"""Kinds that a plugin names: those that can be read, and a sentence for those that cannot."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from podium import Action, Interest, Plugin, Resource
from podium.framework.declarations import is_plain, wrong_interest, wrong_kinds
from podium.testing import TrialCluster
from tests.podium.cli.command import podium


@pytest.mark.parametrize(
    "resources", [("configmaps/v1",), ("configmaps",), ("limitranges/v1", "resourcequotas/v1"), ("jobs.batch/v1",)]
)
def test_kinds_that_can_be_read(resources: tuple[str, ...]) -> None:
    assert list(wrong_kinds(type("Reads", (Plugin,), {"resources": resources}))) == []


@pytest.mark.parametrize(
    "resource", ["configmap/v1", "ConfigMap", "secrets/v1", "pods/v1", "widgets.example.com/1", ""]
)
def test_a_kind_that_cannot_be_read_is_refused_when_the_plugin_is_loaded(resource: str, tmp_path: Path) -> None:
    file = tmp_path / "reads.py"
    file.write_text(f"from podium import Plugin\nclass Reads(Plugin):\n    resources = ({resource!r},)\n")
    ran = podium("plugins", "--plugin", str(file))
    assert ran.code == 2
    assert ran.err == (
        f'--plugin {file}: resources: "{resource}" is no kind that can be read; write "configmaps/v1", '
        '"limitranges/v1", "resourcequotas/v1" or a "plural.group/version"\n'
    )


@pytest.mark.parametrize("resource", ["configmap", "ConfigMap", "Pods", "PriorityClass"])
def test_an_interest_in_a_kind_that_nobody_watches_is_refused(resource: str) -> None:
    class Waits(Plugin):
        def filter_node(self, cycle: object, node: object) -> bool:
            return True

        def interests(self) -> Iterable[Interest]:
            return [Interest(resource, Action.ALL)]

    with pytest.raises(
        Exception, match=f'initializing plugin "Waits": .*"{resource}" is no kind that can be waited for'
    ):
        TrialCluster(Waits)


def test_every_name_of_a_resource_can_be_waited_for() -> None:
    names = [value for name, value in vars(Resource).items() if name.isupper()]
    assert len(names) > 15
    assert [wrong_interest(each) for each in names] == [None] * len(names)
    assert [each for each in names if is_plain(each)] == ["configmaps", "limitranges", "resourcequotas"]

from podium import packages
from podium.cli.catalog import GROUPS, OTHERS, group_of
from tests.podium.cli.command import podium


def test_every_in_tree_plugin_has_a_group_and_a_line_on_what_it_is_for() -> None:
    assert [name for name in packages.plugins() if group_of(name) == OTHERS] == []
    lines = podium("plugins").out.splitlines()
    assert [line for line in lines if line in GROUPS] == list(GROUPS)
    shown = [line.split(maxsplit=1) for line in lines if line.startswith("  ")]
    for name, entry in packages.plugins().items():
        assert [name, entry.purpose] in shown, f"{name} is not on one line of 120 characters"

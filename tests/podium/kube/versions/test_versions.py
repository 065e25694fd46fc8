"""The rules of each Kubernetes minor: found by a version as anyone writes it, and each fact differs somewhere."""

from __future__ import annotations

from dataclasses import fields

import pytest

from podium.kube.versions import KNOWN, NEWEST, UnknownVersionError, VersionRules, find_rules, version_in
from podium.kube.versions.upgrade import changes_between, explained_facts

OF_EVERY_MINOR = {"minor", "table", "gates", "switched"}


def test_every_fact_differs_between_two_of_the_minors_that_are_known() -> None:
    """One that no longer does is no fact about versions: when a minor was dropped, its rule goes to the plugin."""
    facts = {field.name for field in fields(VersionRules)} - OF_EVERY_MINOR
    assert {name for name in facts if len({getattr(rules, name) for rules in KNOWN.values()}) == 1} == set()


def test_every_fact_that_differs_is_told_by_an_upgrade() -> None:
    told_otherwise = {"part_of_generic_workload"}  # by the rows of the gates
    assert {field.name for field in fields(VersionRules)} - OF_EVERY_MINOR - told_otherwise == explained_facts()
    oldest, *_between, newest = KNOWN.values()
    names = [change.name for change in changes_between(oldest, newest, EveryPlugin())]
    assert len(names) == len(set(names)) > 20


def test_a_fact_of_a_plugin_that_is_not_enabled_is_left_out() -> None:
    with_it = {each.name for each in changes_between(KNOWN["1.36"], NEWEST, {"ImageLocality"})}
    without = {each.name for each in changes_between(KNOWN["1.36"], NEWEST, set())}
    assert with_it - without == {"image volumes in ImageLocality"}


class EveryPlugin(set[str]):
    def __contains__(self, _name: object) -> bool:
        return True


def test_the_oldest_minor_can_be_dropped_because_no_other_is_made_of_it() -> None:
    oldest = next(iter(KNOWN.values()))
    for rules in list(KNOWN.values())[1:]:
        assert rules.table is not oldest.table
        assert rules.minor > oldest.minor


@pytest.mark.parametrize(
    ("version", "minor", "warns"),
    [
        ("1.35", "1.35", False),
        ("v1.36", "1.36", False),
        ("v1.36.4", "1.36", False),
        ("1.37.1", "1.37", False),
        (" 1.37\n", "1.37", False),
        ("v1.37.1-eks-1", "1.37", True),
        ("v1.36.4-gke.1200000", "1.36", True),
        ("v1.35.4+k3s1", "1.35", True),
        ("1.36+", "1.36", True),
        ("v1.37.0-rc.1", "1.37", True),
        ("1.38", "1.37", True),
        ("v1.40.2-eks-9", "1.37", True),
        ("2.0", "1.37", True),
    ],
)
def test_a_version_finds_the_rules_of_its_minor_or_the_nearest(version: str, minor: str, warns: bool) -> None:
    found = find_rules(version)
    assert (str(found.rules), bool(found.warning)) == (minor, warns)


@pytest.mark.parametrize(
    "version",
    [
        "1.34",
        "v1.34.5",
        "0.9",
        "latest",
        "",
        "v1",
        "1.",
        "1.37.",
        "1.37.1.2",
        "1.37 x",
        "37",
        "1.３7",
        "-1.37",
        "1.37\x1b",
    ],
)
def test_an_older_version_and_what_is_none_is_one_sentence(version: str) -> None:
    with pytest.raises(UnknownVersionError) as refused:
        find_rules(version)
    assert str(refused.value).endswith(": write one of 1.35, 1.36, 1.37")
    assert "\n" not in str(refused.value)


def test_what_a_server_says_of_its_version_is_read_from_any_of_its_fields() -> None:
    assert version_in({"gitVersion": "v1.36.4", "major": "1", "minor": "36"}) == "v1.36.4"
    assert version_in({"major": "1", "minor": "36+"}) == "1.36+"
    assert [version_in(each) for each in ({}, None, 7, {"major": 1, "minor": 36}, {"gitVersion": ""})] == [""] * 5


def test_rules_say_which_flag_gives_them() -> None:
    assert NEWEST.gates_switched == []
    for rules in KNOWN.values():
        assert rules.gates_switched == []

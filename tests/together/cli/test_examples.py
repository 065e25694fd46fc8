"""`podium examples` lists, shows and copies what ships."""

import json
from pathlib import Path

import pytest

from tests.podium.cli.command import podium

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_every_example_is_listed_with_what_it_is() -> None:
    listed = {each["name"]: each["about"] for each in json.loads(podium("examples", "-o", "json").out)}
    assert set(listed) == {str(file.relative_to(EXAMPLES)) for file in EXAMPLES.rglob("*") if file.is_file()}
    assert all(len(about) > 15 for about in listed.values()), listed
    assert "sample:cluster" in podium("examples").out


@pytest.mark.parametrize(
    "name", ["coscheduling", "coscheduling.yaml", "config/coscheduling", "config/coscheduling.yaml"]
)
def test_one_is_shown_by_its_name(name: str) -> None:
    assert podium("examples", "show", name).out == (EXAMPLES / "config" / "coscheduling.yaml").read_text()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("coschedulin", "coschedulin: there is no such example; did you mean coscheduling?"),
        ("xyzzy", "xyzzy: there is no such example; podium examples lists them"),
        (
            "qos-aware",
            "qos-aware: there are several examples of that name; "
            "write config/minimal/qos-aware.yaml or config/qos-aware.yaml",
        ),
    ],
)
def test_a_name_that_is_none_is_answered_in_one_sentence(name: str, sentence: str) -> None:
    ran = podium("examples", "show", name)
    assert (ran.code, ran.out, ran.err) == (2, "", f"{sentence}\n")


def test_all_are_copied_so_that_they_find_each_other_and_nothing_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    assert podium("examples", "copy", "all", str(target)).code == 0
    assert podium("simulate", str(target / "simulate" / "broker-sample.yaml"), "--check").code == 0
    ran = podium("examples", "copy", "all", str(target))
    assert (ran.code, ran.err) == (2, f"{target}/azure.yaml exists already; remove it, or give another folder\n")


def test_one_is_copied_into_a_folder(tmp_path: Path) -> None:
    ran = podium("examples", "copy", "gang", str(tmp_path))
    assert ran.out == f"{tmp_path}/gang.yaml\n"
    assert (tmp_path / "gang.yaml").read_text() == (EXAMPLES / "manifests" / "gang.yaml").read_text()

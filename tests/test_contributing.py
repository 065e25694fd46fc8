"""The maps are true: every folder is listed, and every rule and every hop is in the file that is named for it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "podium"
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
WAY = (ROOT / "docs/explanation/the-way-of-a-pod.md").read_text()
MOST_HOPS = 15


def rows(heading: str, text: str = TEXT) -> list[list[str]]:
    """The cells of the first table under a heading."""
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_map_has_every_folder_and_no_other() -> None:
    listed = [cells[0].strip("`/") for cells in rows("Where things are")]
    there = {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()}
    assert len(listed) == len(set(listed))
    assert set(listed) == there


def test_packages_named_in_the_map_exist() -> None:
    for folder, what in rows("Where things are"):
        for package in re.findall(r"`([a-z_/]+)/`", what):
            assert (SOURCE / package).is_dir() or (SOURCE / folder.strip("`/") / package).is_dir(), package


@pytest.mark.parametrize(("rule", "file", "text"), rows("Where is the rule for …"))
def test_a_rule_is_where_the_table_says(rule: str, file: str, text: str) -> None:
    path = SOURCE / file.strip("`")
    assert path.is_file(), f"{rule}: there is no {file}"
    assert text.strip("`") in path.read_text(), f"{rule}: {file} has no {text}"


def test_the_table_has_twenty_rules() -> None:
    assert len(rows("Where is the rule for …")) >= 20


def test_a_word_is_explained_once() -> None:
    words = [word.strip() for cells in rows("Words") for word in cells[0].split(",")]
    assert len(words) == len(set(words))


WAYS = {
    heading: rows(heading, WAY.replace("# The way of a pod", "## The way of a pod"))
    for heading in ("The way of a pod", "An extender's request", "A request of kubectl")
}


@pytest.mark.parametrize("hops", WAYS.values(), ids=WAYS)
def test_every_hop_of_a_way_is_in_its_file(hops: list[list[str]]) -> None:
    assert 0 < len(hops) <= MOST_HOPS
    assert [cells[0] for cells in hops] == [str(number + 1) for number in range(len(hops))]
    for _number, file, text, _what in hops:
        path = SOURCE / file.strip("`")
        assert path.is_file(), f"there is no {file}"
        assert text.strip("`") in path.read_text(), f"{file} has no {text}"


def test_every_file_named_on_the_way_exists() -> None:
    for file in re.findall(r"`([a-z_/]+\.py)`", WAY):
        assert (SOURCE / file).is_file(), file

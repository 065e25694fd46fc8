"""The maps are true: every folder is listed, and every rule and every hop is in the file that is named for it."""

import re
from pathlib import Path

import pytest

from docs.architecture import picture
from podium import packages

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
WAY = (ROOT / "docs/explanation/the-way-of-a-pod.md").read_text()
MOST_HOPS = 25


def rows(heading: str, text: str = TEXT) -> list[list[str]]:
    """The cells of the first table under a heading."""
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


PACKAGES = sorted(folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists())
TABLES = TEXT.partition("## Where things are\n")[2].partition("\n## ")[0]
FOLDERS = re.findall(r"^\| `([a-z_/]+)/` \|", TABLES, re.MULTILINE)


def test_the_map_has_every_package_and_each_a_readme() -> None:
    listed = re.findall(r"^\| \[`([a-z_]+)`\]\(([^)]+)\)", TABLES, re.MULTILINE)
    assert sorted(name for name, _page in listed if name != "tools") == PACKAGES
    for _name, page in listed:
        assert len((ROOT / page).read_text().splitlines()) <= 40, f"{page} is more than a screen"


def test_the_map_has_every_folder_that_is_not_a_plugin() -> None:
    there = {
        f"{package}/{folder.name}"
        for package in PACKAGES
        for folder in (SOURCE / package).iterdir()
        if _is_package(folder)
    }
    plugins = {entry.target.partition(":")[0].replace(".", "/") for entry in packages.plugins().values()}
    named = {*FOLDERS, *re.findall(r"`([a-z_]+/[a-z_0-9]+)/`", TABLES)}
    assert len(FOLDERS) == len(set(FOLDERS))
    assert there - named - plugins == set()
    assert {
        folder for folder in named if folder.partition("/")[0] in PACKAGES and not (SOURCE / folder).is_dir()
    } == set()


def _is_package(folder: Path) -> bool:
    return folder.name != "cli" and (folder / "__init__.py").exists()


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


def test_the_picture_of_the_packages_is_of_today() -> None:
    assert (ROOT / "docs/architecture.svg").read_text() == picture(), "run python -m docs.architecture"

"""The files for those who join: lanes that exist, forms to fill in, hooks that fetch nothing, no addresses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_the_forms_can_be_filled_in() -> None:
    for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml"):
        form = read(path)
        if path.stem == "config":
            continue
        assert {"name", "description", "body"} <= set(form)
        fields = [each for each in form["body"] if each["type"] != "markdown"]
        assert len({each["id"] for each in fields}) == len(fields)
        assert all(each["attributes"]["label"] for each in fields)
        assert any(each.get("validations", {}).get("required") for each in fields)


def test_hooks_use_what_is_installed() -> None:
    for repository in read(ROOT / ".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            assert hook["language"] == "system"
            assert hook["entry"].startswith(".venv/bin/")


def test_the_home_page_and_the_contact_stand_in_one_place() -> None:
    """Everything else refers to [project.urls], so that there is nothing to find when they change."""
    files = [*filter(Path.is_file, GITHUB.rglob("*")), ROOT / "SECURITY.md", ROOT / ".pre-commit-config.yaml"]
    addresses = re.compile(r"https?://|\w@\w+\.\w|(?<![\w/-])@\w")
    assert [path.name for path in files if addresses.search(path.read_text())] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not {"authors", "maintainers"} & set(project)

"""A release is made on a clone: the versions, the changelog, what is built, and what stands in its way."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from tools import release
from tools.sbom import sbom

ROOT = Path(__file__).parents[2]
NEXT = "99.1.0"


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def state(root: Path) -> tuple[str, str, str]:
    """The commit, what differs from it, and the tags."""
    return git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain"), git(root, "tag")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository with what a release writes to, and something to release."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "a tester")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "tester@example.com")
    for name in ("pyproject.toml", "CHANGELOG.md", "deploy/helm/podium/Chart.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    return something_new(tmp_path, monkeypatch)


def something_new(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## Unreleased\n", "## Unreleased\n\n- Something new.\n"))
    git(folder, "commit", "--quiet", "--all", "--message", "Something new")
    monkeypatch.setattr(release, "ROOT", folder)
    monkeypatch.setattr(release, "ENGINES", ())
    return folder


def test_without_being_asked_to_it_only_says_the_steps(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(repository)
    assert release.main([NEXT]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"1. Write version {NEXT} instead of ")
    assert out.endswith("Nothing was changed. DRY_RUN=no takes these steps.\n")
    assert state(repository) == before
    assert not (repository / "dist").exists()


def test_a_release_is_complete(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("the sources are not in a repository")
    clone = repository / "clone"
    git(repository, "clone", "--quiet", "--shared", "--no-tags", str(ROOT), str(clone))
    something_new(clone, monkeypatch)
    assert release.main([NEXT, "--no-dry-run"]) == 0, capsys.readouterr().err
    commit = git(clone, "rev-parse", "HEAD")
    assert git(clone, "rev-parse", f"v{NEXT}^{{commit}}") == commit
    assert git(clone, "status", "--porcelain") == ""

    changelog = (clone / "CHANGELOG.md").read_text()
    assert re.search(rf"^## Unreleased\n\n## {NEXT} - \d{{4}}-\d\d-\d\d\n\n- Something new.$", changelog, re.MULTILINE)
    assert f"image: podium:{NEXT}\n" in (clone / "deploy/extender/safe.yaml").read_text()

    wheel, chart = f"podium-{NEXT}-py3-none-any.whl", f"podium-chart-{NEXT}.tgz"
    names = {wheel, chart, f"podium-{NEXT}.tar.gz", f"podium-{NEXT}.cdx.json"}
    sums = dict(line.split("  ")[::-1] for line in (clone / "dist/SHA256SUMS").read_text().splitlines())
    assert set(sums) == names
    for name, digest in sums.items():
        assert hashlib.sha256((clone / "dist" / name).read_bytes()).hexdigest() == digest
    with zipfile.ZipFile(clone / "dist" / wheel) as archive:
        assert archive.read("podium/commit.txt").decode().strip() == commit
        assert not any(name.startswith(("tools/", "tests/")) for name in archive.namelist())
    with tarfile.open(clone / "dist" / chart) as archive:
        described = archive.extractfile("podium/Chart.yaml")
        assert described is not None
        found = yaml.safe_load(described)
        assert (found["version"], found["appVersion"]) == (NEXT, NEXT)
        assert "podium/values.yaml" in archive.getnames()


def test_a_step_that_fails_says_how_to_go_back(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(repository)
    monkeypatch.setattr(sys, "executable", "false")  # what would build the packages
    assert release.main([NEXT, "--no-dry-run"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"Fix that, run git reset --hard {before[0][:12]}, and start again."
    git(repository, *last.removeprefix("Fix that, run git ").removesuffix(", and start again.").split())
    assert state(repository) == before


@pytest.mark.parametrize(
    ("version", "prepare", "problem"),
    [
        ("1.2", "", '"1.2" is no version: write MAJOR.MINOR.PATCH, such as 0.3.0'),
        ("0.0.9", "", "0.0.9 is not newer than "),
        (NEXT, "touch new", "1 files are changed or new: commit or remove them first"),
        (NEXT, f"git tag v{NEXT}", f"the tag v{NEXT} exists: choose a higher version"),
        (
            NEXT,
            "printf '## Unreleased\\n\\n## 0.2.0\\n\\n- Old.\\n' > CHANGELOG.md && git commit -qam released",
            "CHANGELOG.md has nothing under Unreleased: there is nothing to release",
        ),
    ],
)
def test_what_stands_in_the_way_is_said_in_one_sentence(
    version: str, prepare: str, problem: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["sh", "-c", prepare], cwd=repository, check=True)
    assert release.main([version, "--no-dry-run"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(problem)
    assert captured.err.count("\n") == 1


def test_the_bill_of_materials_has_every_package_of_the_lock_with_its_hashes() -> None:
    lock = (ROOT / release.SHIPPED).read_text()
    text = sbom("1.0.0", lock)
    assert text == sbom("1.0.0", lock)
    bill = json.loads(text)
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/podium@1.0.0"
    packages = {f"{each['name']}=={each['version']}" for each in bill["components"]}
    assert packages == set(re.findall(r"^[^\s#]+==[^\s;]+", lock, re.MULTILINE))
    assert len({each["bom-ref"] for each in bill["components"]}) == len(packages)
    assert sum(len(each["hashes"]) for each in bill["components"]) == lock.count("--hash=sha256:")


def test_the_changelog_has_one_line_an_entry_and_ends_in_the_version_of_the_project() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    assert re.findall(r"^## (.*?)(?: - .*)?$", text, re.MULTILINE) == ["Unreleased", *versions]
    assert f'\nversion = "{versions[0]}"\n' in (ROOT / "pyproject.toml").read_text()
    entries = text.partition("## Unreleased\n")[2].splitlines()
    assert [line for line in entries if line and not line.startswith(("- ", "## ", "### ", "#### "))] == []
    assert [line for line in entries if line.startswith("- ") and not line.endswith(".")] == []

"""Makes a release: version, changelog and commit, then all that is uploaded, and the tag.

    make release NEXT=0.3.0                   # says the steps and changes nothing
    make release NEXT=0.3.0 DRY_RUN=no        # takes them, up to the upload

The tag comes last, so that a build that fails leaves none. What is built carries the commit's time, and the same commit
gives the same files. An image is built only where podman or buildah is installed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from tools.sbom import sbom

ROOT: Final = Path(__file__).resolve().parents[1]
CHART: Final = Path("deploy/helm/podium")
SHIPPED: Final = Path("deploy/image/requirements.lock")
"""The packages that Podium runs with, at the versions of requirements.lock."""
ENGINES: Final = ("podman", "buildah")
UNRELEASED: Final = "## Unreleased\n"
_VERSION: Final = re.compile(r'^version = "(\d+\.\d+\.\d+)"$', re.MULTILINE)


class ReleaseError(Exception):
    """The release cannot be made; the text is one sentence that says why and what to do."""


@dataclass(frozen=True)
class Release:
    root: Path
    old: str
    new: str
    date: str

    @property
    def dist(self) -> Path:
        return self.root / "dist"

    @property
    def tag(self) -> str:
        return f"v{self.new}"


class Step(NamedTuple):
    says: str
    take: Callable[[Release], None]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make release NEXT=0.3.0", description="Make a release, up to the upload.")
    parser.add_argument("version", help="the version to release, such as 0.3.0")
    parser.add_argument("--dry-run", action=argparse.BooleanOptionalAction, default=True, help="only say the steps")
    given = parser.parse_args(arguments)
    try:
        release = checked(ROOT, given.version, datetime.now(UTC).strftime("%Y-%m-%d"))
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 2
    before = _git(ROOT, "rev-parse", "HEAD")
    for number, step in enumerate(steps(), 1):
        print(f"{number}. {step.says.format(release=release)}", flush=True)
        if given.dry_run:
            continue
        try:
            step.take(release)
        except ReleaseError as error:
            print(f"{error}\nFix that, run git reset --hard {before[:12]}, and start again.", file=sys.stderr)
            return 2
    if given.dry_run:
        print("Nothing was changed. DRY_RUN=no takes these steps.")
    else:
        print(f"What is left: push the commit and the tag {release.tag}, and upload what is in dist.")
    return 0


def checked(root: Path, new: str, date: str) -> Release:
    """The release, if nothing stands in its way."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", new):
        raise ReleaseError(f'"{new}" is no version: write MAJOR.MINOR.PATCH, such as 0.3.0')
    found = _VERSION.search((root / "pyproject.toml").read_text())
    if found is None:
        raise ReleaseError("pyproject.toml has no version: give it one")
    old = found[1]
    if _numbers(new) <= _numbers(old):
        raise ReleaseError(f"{new} is not newer than {old}, the version in pyproject.toml: choose a higher one")
    if changed := _git(root, "status", "--porcelain"):
        raise ReleaseError(f"{len(changed.splitlines())} files are changed or new: commit or remove them first")
    if _git(root, "tag", "--list", f"v{new}"):
        raise ReleaseError(f"the tag v{new} exists: choose a higher version")
    if "\n- " not in _unreleased((root / "CHANGELOG.md").read_text()):
        raise ReleaseError("CHANGELOG.md has nothing under Unreleased: there is nothing to release")
    return Release(root, old, new, date)


def steps() -> list[Step]:
    """All of a release, in order."""
    engine = next(filter(shutil.which, ENGINES), "")
    return [
        Step("Write version {release.new} instead of {release.old}: pyproject.toml, the chart, deploy/, docs/", bump),
        Step("Put what is under Unreleased in CHANGELOG.md under {release.new} - {release.date}", cut_changelog),
        Step("Commit: Release {release.new}", commit),
        Step("Build the wheel and the sdist into dist", build_packages),
        Step(f"Build the image with {engine} into dist", lambda release: build_image(release, engine))
        if engine
        else Step("Skip the image: neither podman nor buildah is installed", lambda _release: None),
        Step("Package the chart into dist", package_chart),
        Step("Write the bill of materials (CycloneDX) into dist", write_sbom),
        Step("Write the checksums of all these files into dist/SHA256SUMS", write_checksums),
        Step("Tag: {release.tag}", set_tag),
    ]


def bump(release: Release) -> None:
    chart = CHART / "Chart.yaml"
    _replace(release.root / "pyproject.toml", f'version = "{release.old}"', f'version = "{release.new}"')
    _replace(release.root / chart, f"ersion: {release.old}\n", f"ersion: {release.new}\n")  # version and appVersion
    for page in sorted([*release.root.glob("deploy/**/*.yaml"), *release.root.glob("docs/**/*.md")]):
        _replace(page, f"podium:{release.old}", f"podium:{release.new}")


def cut_changelog(release: Release) -> None:
    _replace(release.root / "CHANGELOG.md", UNRELEASED, f"{UNRELEASED}\n## {release.new} - {release.date}\n")


def commit(release: Release) -> None:
    _git(release.root, "commit", "--quiet", "--all", "--message", f"Release {release.new}")


def build_packages(release: Release) -> None:
    """The wheel is made from the sdist, so each has all it needs."""
    if release.dist.exists():
        shutil.rmtree(release.dist)
    build = [sys.executable, "-m", "uv", "build", "--quiet", "--offline", "--no-build-isolation", "--no-config"]
    _run(release, *build, "--python", sys.executable, "--out-dir", str(release.dist), ".")
    (release.dist / ".gitignore").unlink(missing_ok=True)


def build_image(release: Release, engine: str) -> None:
    _run(release, "make", "image", f"ENGINE={engine}")
    archive = f"oci-archive:{release.dist / f'podium-{release.new}-image.tar'}"
    _run(release, engine, "push", f"podium:{release.new}", archive)


def package_chart(release: Release) -> None:
    """What `helm package` makes, of the files in the repository."""
    when = int(_commit_time(release.root))
    with (
        gzip.GzipFile(release.dist / f"podium-chart-{release.new}.tgz", "wb", mtime=when) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in _git(release.root, "ls-files", str(CHART)).splitlines():
            content = (release.root / name).read_bytes()
            entry = tarfile.TarInfo(str(Path("podium") / Path(name).relative_to(CHART)))
            entry.size, entry.mtime = len(content), when
            archive.addfile(entry, io.BytesIO(content))


def write_sbom(release: Release) -> None:
    text = sbom(release.new, (release.root / SHIPPED).read_text())
    (release.dist / f"podium-{release.new}.cdx.json").write_text(text)


def write_checksums(release: Release) -> None:
    files = sorted(path for path in release.dist.iterdir() if path.name != "SHA256SUMS")
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (release.dist / "SHA256SUMS").write_text("".join(lines))


def set_tag(release: Release) -> None:
    _git(release.root, "tag", "--annotate", "--message", f"Podium {release.new}", release.tag)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _unreleased(changelog: str) -> str:
    return changelog.partition(UNRELEASED)[2].partition("\n## ")[0]


def _replace(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    if before in text:
        path.write_text(text.replace(before, after))


def _commit_time(root: Path) -> str:
    return _git(root, "log", "-1", "--format=%ct")


def _git(root: Path, *arguments: str) -> str:
    return _output(["git", *arguments], root)


def _run(release: Release, *command: str) -> None:
    _output(command, release.root, {**os.environ, "SOURCE_DATE_EPOCH": _commit_time(release.root)})


def _output(command: Sequence[str], root: Path, environment: dict[str, str] | None = None) -> str:
    ran = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise ReleaseError(f"{' '.join(command)} failed: {(ran.stderr or ran.stdout).strip()}")
    return ran.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())

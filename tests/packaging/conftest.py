"""Fixtures that give tests the wheel, and an environment of its own that it is installed in."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, clean_environment


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit, of the sources as they are here."""
    sources = tmp_path_factory.mktemp("repository")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in tracked.decode().split("\0"):
        if name.startswith(("src/", "examples/")) or name in (
            "pyproject.toml",
            "setup.py",
            "MANIFEST.in",
            "README.md",
            "LICENSE",
        ):
            target = sources / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
    for command in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "--message", "Sources"]):
        subprocess.run(["git", *command], cwd=sources, check=True)
    return sources


@pytest.fixture(scope="session")
def sdist(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    program = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
    command = [sys.executable, "-c", program, str(folder)]
    subprocess.run(command, cwd=repository, check=True, capture_output=True, env=clean_environment())
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made from the sdist as `python -m build` does."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", folder, sdist], check=True, env=clean_environment())
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every installed package but Podium."""
    folder = tmp_path_factory.mktemp("dependencies")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if "podium" not in package.name and package.suffix != ".pth":
            (folder / package.name).symlink_to(package)
    return folder


@pytest.fixture(scope="session")
def installed(wheel: Path, dependencies: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheel, and with what it depends on from this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    install = [*pip, "install", "--quiet", "--no-compile", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, env=clean_environment())
    packages = next((folder / "lib").glob("python*/site-packages"))
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    return folder / "bin"

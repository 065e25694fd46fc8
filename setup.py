"""Writes into a wheel and an sdist which commit they were made from, and puts the examples into the wheel.

All else is in pyproject.toml.
"""

import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
GIVEN = HERE / "src/podium/commit.txt"  # in an sdist, whose repository is not there any more


class BuildWithCommit(build_py):
    """Copies the modules, and puts the commit and the examples beside them."""

    def run(self):
        if not self.editable_mode:  # what an older build left would be packed, too
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            write_commit(Path(self.build_lib, "podium"))
            target = Path(self.build_lib, "podium/examples")
            shutil.copytree(HERE / "examples", target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


class SourcesWithCommit(sdist):
    """Collects the sources, and puts the commit beside the modules."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        write_commit(Path(base_dir, "src/podium"))


def write_commit(package):
    if GIVEN.is_file():
        return  # it was copied with the modules
    try:
        asked = ["git", "rev-parse", "--show-toplevel", "HEAD"]
        said = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=HERE).stdout
    except (OSError, subprocess.CalledProcessError):
        return
    repository, commit = said.splitlines()
    if Path(repository) == HERE:  # and not one that the sources only lie in
        Path(package, "commit.txt").write_text(f"{commit}\n", encoding="ascii")


setup(cmdclass={"build_py": BuildWithCommit, "sdist": SourcesWithCommit})

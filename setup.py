"""Writes into a built package which commit it was made from; all else is in pyproject.toml."""

import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithCommit(build_py):
    """Copies the modules, and puts the commit beside them."""

    def run(self):
        super().run()
        given = Path("src/podium/commit.txt")  # in an sdist, whose repository is not there any more
        asked = ["git", "rev-parse", "HEAD"]
        if given.is_file() or self.editable_mode:
            return
        try:
            commit = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=Path(__file__).parent).stdout
        except (OSError, subprocess.CalledProcessError):
            return
        Path(self.build_lib, "podium", "commit.txt").write_text(commit, encoding="ascii")


setup(cmdclass={"build_py": BuildWithCommit})

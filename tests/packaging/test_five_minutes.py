"""The page "Start in five minutes" works word for word on a machine that has nothing but the wheel.

Its commands are typed into one shell, in a folder with the wheel, without the checkout and without a network; what the
wheel depends on is found where pip would have put it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.packaging.environment import clean_environment
from tests.test_docs import FIVE_MINUTES, blocks, commands, matches

END = "---- end of a command ----"


class Shell:
    """A shell in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        variables = clean_environment() | {"HOME": str(folder), "COLUMNS": "100", "PIP_NO_INDEX": "1"}
        self._process = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=variables,
        )

    def type(self, line: str) -> str:
        """What the command prints, on either stream."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\necho '{END}'\n")
        self._process.stdin.flush()
        printed: list[str] = []
        for each in self._process.stdout:
            if each.rstrip("\n") == END:
                return "".join(printed)
            printed.append(each)
        raise AssertionError(f"the shell ended at {line}")

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.mark.long
def test_the_page_can_be_followed_word_for_word(wheel: Path, dependencies: Path, tmp_path: Path) -> None:
    (tmp_path / wheel.name).write_bytes(wheel.read_bytes())
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    shell = Shell(tmp_path)
    shell.type(f"PATH={python.parent}{os.pathsep}$PATH")
    for block in blocks(FIVE_MINUTES):
        if block.path:
            (tmp_path / block.path).write_text(block.text)
        if block.kind == "console":
            for command in commands(block.text):
                printed = shell.type(command.line)
                assert matches(command.prints, printed), f"$ {command.line}\nprints\n{printed}"
                packages = tmp_path / "podium-try" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
                if packages.exists():
                    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    where = shell.type("python3 -c 'import podium; print(podium.__file__)'")
    assert where.startswith(str(tmp_path)), where
    shell.close()

"""Runs `podium` in this process, which is a hundred times quicker than starting it."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest import mock

from podium.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def podium(*arguments: str, stdin: str | bytes = "") -> Ran:
    """Exit code, standard output and standard error of a command line."""
    out, err = io.StringIO(), io.StringIO()
    given = stdin.encode() if isinstance(stdin, str) else stdin
    with (
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given))),
        mock.patch.object(sys, "path", list(sys.path)),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main(arguments)
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int), f"podium must end with an exit code, not {code!r}"
    return Ran(code, out.getvalue(), err.getvalue())

"""Runs `podium` in this process, which is a hundred times quicker than starting it."""

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest import mock

from podium.cli import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def podium(*arguments: str, stdin: str | bytes = "", columns: int | None = None) -> Ran:
    """Exit code, standard output and standard error of a command line, as in a pipe or on a terminal so wide."""
    out, err = io.StringIO(), io.StringIO()
    given = stdin.encode() if isinstance(stdin, str) else stdin
    width = {} if columns is None else {"COLUMNS": str(columns)}
    calm = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    with (
        mock.patch.dict(os.environ, calm | width, clear=True),
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

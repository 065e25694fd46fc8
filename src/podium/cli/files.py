"""Reads what the user names on the command line: files, or standard input for "-"."""

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from podium.cli.errors import InputError

if TYPE_CHECKING:
    from podium.kube import KubeObject

STDIN = "-"


def read_text(file: str) -> tuple[str, str]:
    """The text of a file, and what to call the file in messages; raises DocumentError where it is too large."""
    from podium.kube.files import read_file, read_stream

    source = "<stdin>" if file == STDIN else file
    data = read_stream(sys.stdin.buffer, source) if file == STDIN else read_file(Path(file))
    try:
        return data.decode("utf-8-sig"), source
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{source}:{line}: not UTF-8 text; save the file as UTF-8") from None


def read_objects(files: Iterable[str]) -> "tuple[list[KubeObject], Counter[str]]":
    """The objects of all files in order, and how many of which other kinds were passed over."""
    from podium.kube import decode_documents

    objects: list[KubeObject] = []
    skipped: Counter[str] = Counter()
    for file in files:
        decoded = decode_documents(*read_text(file))
        objects += decoded.objects
        skipped += decoded.skipped
    return objects, skipped

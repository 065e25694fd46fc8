"""Reads what the user names on the command line: files, "-" for standard input, or "sample:NAME" for what ships."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from podium.cli.errors import InputError

if TYPE_CHECKING:
    from podium.kube import Decoded, KubeObject

STDIN = "-"
SAMPLE = "sample:"
"""Stands before the name of a file that ships with Podium."""
SAMPLES = Path(__file__).parent.parent / "samples"


def read_text(file: str) -> tuple[str, str]:
    """The text of a file, and what to call the file in messages; raises DocumentError where it is too large."""
    data, source = read_bytes(file)
    try:
        return data.decode("utf-8-sig"), source
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{source}:{line}: not UTF-8 text; save the file as UTF-8") from None


def read_bytes(file: str) -> tuple[bytes, str]:
    """The bytes of a file, and what to call the file in messages; raises DocumentError where it is too large."""
    from podium.kube.documents import read_file, read_stream

    if file == STDIN:
        return read_stream(sys.stdin.buffer, "<stdin>"), "<stdin>"
    return read_file(named_path(file)), file


def named_path(file: str) -> Path:
    """Where the file lies that was named: a path, or a sample's name.

    >>> named_path("sample:cluster").name, named_path("mine.yaml").name
    ('cluster.yaml', 'mine.yaml')
    """
    if not file.startswith(SAMPLE):
        return Path(file)
    samples = {each.stem: each for each in sorted(SAMPLES.glob("*.yaml"))}
    name = file.removeprefix(SAMPLE)
    if name not in samples:
        raise InputError(f"{file}: there is no such sample; write {' or '.join(f'{SAMPLE}{each}' for each in samples)}")
    return samples[name]


@contextmanager
def writing(target: str | Path) -> Iterator[None]:
    """Write a file or folder that the user named; where that fails, one sentence says so."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{error.filename or target}: cannot be written: {error.strerror or error}") from None


def read_objects(files: Iterable[str]) -> "Decoded":
    """The objects of all files in order, how many of which other kinds were passed over, and the API's version."""
    from podium.kube import Decoded, decode_documents

    objects: list[KubeObject] = []
    skipped: Counter[str] = Counter()
    server_version = ""
    for file in files:
        decoded = decode_documents(*read_text(file))
        objects += decoded.objects
        skipped += decoded.skipped
        server_version = decoded.server_version or server_version
    return Decoded(objects, skipped, server_version)

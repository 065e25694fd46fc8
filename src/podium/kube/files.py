"""Reads files and streams that the user names, no further than the bounds say: /dev/zero is a file, too."""

from pathlib import Path
from typing import BinaryIO

from podium.kube.bounds import FILE, Bounds, too_large


def read_file(path: Path, bounds: Bounds = FILE) -> bytes:
    """The content of a file; raises OSError, or DocumentError where it is too large."""
    with path.open("rb") as stream:
        return read_stream(stream, str(path), bounds)


def read_stream(stream: BinaryIO, source: str, bounds: Bounds = FILE) -> bytes:
    """What a stream holds; `source` is what to call it in messages."""
    data = stream.read(bounds.size + 1)
    if len(data) > bounds.size:
        raise too_large(bounds).of(source)
    return data

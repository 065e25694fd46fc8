"""A file or a stream without end is read no further than its bounds."""

import io
from pathlib import Path

import pytest

from podium.kube.documents import Bounds, DocumentError
from podium.kube.files import read_file, read_stream

SMALL = Bounds(size=1 << 20, values=100, seconds=1.0)


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"^/dev/zero: larger than 1 MiB$"):
        read_file(Path("/dev/zero"), SMALL)


def test_what_is_within_the_bounds_is_read_in_full() -> None:
    content = b"x" * SMALL.size
    assert read_stream(io.BytesIO(content), "here", SMALL) == content
    with pytest.raises(DocumentError, match=r"^here: larger"):
        read_stream(io.BytesIO(content + b"x"), "here", SMALL)

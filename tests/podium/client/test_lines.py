import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.client.reading import BrokenStream, LineSplitter


@given(st.lists(st.binary(max_size=20)), st.data())
def test_lines_are_the_same_however_the_bytes_are_cut(texts: list[bytes], data: st.DataObject) -> None:
    stream = b"\n".join(texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    lines = LineSplitter()
    found: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += lines.feed(stream[start:end])
    whole = stream.split(b"\n")[:-1]  # what follows the last line end is not a line yet
    assert found == [line for line in whole if line]


def test_a_line_may_be_as_long_as_the_bound_and_no_longer() -> None:
    lines = LineSplitter(longest=10)
    assert lines.feed(b"0123456789\n01234") == [b"0123456789"]
    assert lines.feed(b"56789\n") == [b"0123456789"]
    with pytest.raises(BrokenStream, match="the server sent a line of more than 10 bytes"):
        lines.feed(b"0123456789+\n")


def test_a_line_that_never_ends_is_not_collected_without_end() -> None:
    lines = LineSplitter(longest=10)
    assert lines.feed(b"012345") == []
    with pytest.raises(BrokenStream):
        lines.feed(b"012345")

import msgspec
import pytest

from podium.client.api_errors import ApiError
from podium.client.reading import BrokenStream, ObjectIdentity, Reader
from tests.podium.client.misbehaving import NODES, line, node, status


@pytest.mark.parametrize("keep_raw", [False, True])
def test_an_event_is_what_happened_and_to_which_version_of_what(keep_raw: bool) -> None:
    kind, found = Reader(NODES, keep_raw=keep_raw).event(line("MODIFIED", node("a", 7, "u", labels={"b": "c"})))
    assert kind == "MODIFIED"
    assert found.identity == ObjectIdentity("a", "u", "7")
    assert found.object is not None
    assert found.object.labels == {"b": "c"}
    assert (found.raw is not None) == keep_raw


@pytest.mark.parametrize("keep_raw", [False, True])
def test_an_object_with_broken_text_is_known_by_name_only(keep_raw: bool) -> None:
    broken = line("ADDED", node("a", 7, "u", labels={"b": "BROKEN"})).replace(b"BROKEN", b"\xff\xfe")
    _, found = Reader(NODES, keep_raw=keep_raw).event(broken)
    assert found.identity == ObjectIdentity("a", "u", "7")
    assert found.object is None
    assert "UTF-8" in found.problem


def test_nesting_without_end_is_garbage() -> None:
    nested = b'{"type": "ADDED", "object": {"spec": {"podCIDRs": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}}"
    with pytest.raises(BrokenStream, match="not an event of a watch"):
        Reader(NODES).event(nested)
    endless = msgspec.Raw(b'{"metadata": {"name": "a"}, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    assert Reader(NODES).object(endless).problem


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (status(500, "InternalError"), 500),
        (status(429, "TooManyRequests"), 429),
        (status(410, "Gone"), 410),
        ({"reason": "Expired"}, 410),
        ({}, 500),
        ({"code": "?"}, 500),
    ],
)
def test_an_error_in_a_watch_is_raised_as_if_it_had_been_the_answer(event: object, code: int) -> None:
    with pytest.raises(ApiError) as raised:
        Reader(NODES).event(line("ERROR", event))
    assert raised.value.status == code

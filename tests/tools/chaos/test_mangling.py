"""Watches through a broken proxy: nothing is lost, but the order is not what it was."""

import random

import pytest

from tools.chaos.mangling import DOUBLED, REORDERED, Mangling

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


def lines_in(sent: bytes) -> list[bytes]:
    """The lines of a whole answer."""
    assert sent.startswith(HEAD)
    rest, body = sent[len(HEAD) :], b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        assert rest[int(size, 16) :].startswith(b"\r\n")
        rest = rest[int(size, 16) + 2 :]
    return body.splitlines()


def mangled(events: list[bytes], happens: set[str], seed: int = 0) -> list[bytes]:
    rng = random.Random(seed)
    mangling = Mangling(lambda fault: fault in happens and rng.random() < 0.5, rng)
    whole = HEAD + b"".join(chunk(each + b"\n") for each in events) + b"0\r\n\r\n"
    sent = b""
    while whole:
        size = rng.randint(1, 60)
        sent += mangling(whole[:size])
        whole = whole[size:]
    return lines_in(sent)


EVENTS = [b'{"type":"MODIFIED","object":%d}' % number for number in range(50)]


def test_when_nothing_happens_everything_comes_as_it_was() -> None:
    assert mangled(EVENTS, set()) == EVENTS


@pytest.mark.parametrize("seed", range(20))
def test_reordered_events_all_come(seed: int) -> None:
    came = mangled(EVENTS, {REORDERED}, seed)
    assert sorted(came) == sorted(EVENTS)
    assert came != EVENTS


@pytest.mark.parametrize("seed", range(20))
def test_doubled_events_come_once_more_and_never_before_their_time(seed: int) -> None:
    came = mangled(EVENTS, {DOUBLED}, seed)
    assert list(dict.fromkeys(came)) == EVENTS
    assert len(came) > len(EVENTS)


def test_what_was_held_back_comes_in_one_piece_with_what_follows() -> None:
    chances = iter([True, False, False])
    mangling = Mangling(lambda fault: fault == REORDERED and next(chances), random.Random(0))
    assert mangling(HEAD) == HEAD
    assert (mangling(chunk(b"1\n")), mangling.in_one_piece) == (b"", False)
    assert (mangling(chunk(b"2\n")), mangling.in_one_piece) == (chunk(b"2\n1\n"), True)
    assert (mangling(chunk(b"3\n")), mangling.in_one_piece) == (chunk(b"3\n"), False)


def test_an_answer_that_is_no_stream_is_left_alone() -> None:
    answer = b"HTTP/1.1 410 Gone\r\nContent-Length: 2\r\n\r\n{}"
    assert Mangling(lambda _fault: True, random.Random(0))(answer) == answer

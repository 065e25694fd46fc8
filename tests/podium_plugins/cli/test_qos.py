"""`podium qos` on pages that are none, lie, or take their time."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from podium_plugins.cli import qos
from tests.podium.cli.command import podium

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


@contextmanager
def answering(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """The URL of a server that does this with each connection, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    requests.append(connection.recv(4096))
                    with suppress(OSError):  # it had enough
                        answer(connection)

        requests: list[bytes] = []
        thread = Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def trickle(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
    connection.settimeout(0.02)
    while True:
        connection.sendall(b"C")
        try:
            if not connection.recv(1):
                return
        except TimeoutError:
            pass


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (HEAD + b"\r\n\xff\xfe\x00", "not a QoS page"),
        (HEAD + b"\r\n<html>hello</html>", "not a QoS page"),
        (HEAD + b"Content-Length: 1000\r\n\r\nCONTROLLER", "closed before the whole answer came"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nffff\r\nCONTROLLER", "closed before the whole answer came"),
        (HEAD + b"\r\nCONTROLLER" + b" " * 3000, "larger than 2000 bytes"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "HTTP status 302"),
        (b"\x00\x01nonsense\r\n\r\n", "it cannot be read"),
        (b"", "closed before the whole answer came"),
        (trickle, "no whole answer came within 0.5 s"),
    ],
)
@pytest.mark.parametrize("command", [(), ("-o", "json"), ("report",)])
def test_what_is_no_whole_page_is_a_sentence(
    answer: bytes | Callable[[socket.socket], None],
    sentence: str,
    command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(qos, "SECONDS", 0.5)
    monkeypatch.setattr(qos, "LARGEST", 2000)
    act = (lambda connection: connection.sendall(answer)) if isinstance(answer, bytes) else answer
    with answering(act) as url:
        ran = podium("qos", "--url", url, *command)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("body", [b"[1]", b"3", b"null"])
def test_a_report_that_is_none_is_a_sentence(body: bytes) -> None:
    with answering(lambda connection: connection.sendall(HEAD + b"\r\n" + body)) as url:
        ran = podium("qos", "--url", url, "report")
    assert ran.code == 2
    assert "not a QoS page" in ran.err


@pytest.mark.parametrize("nowhere", ["", "http://127.0.0.1:1"])
def test_the_url_may_stand_before_the_command_or_after_it(nowhere: str) -> None:
    with answering(lambda connection: connection.sendall(HEAD + b'\r\n{"gini_index": 0.25}')) as url:
        before = ("--url", nowhere, "report", "--url", url) if nowhere else ("--url", url, "report")
        assert "gini_index" in podium("qos", *before).out


def test_names_of_a_page_cannot_act_on_the_terminal() -> None:
    page = "CONTROLLER\n\x1b[2Jweb\u202e\n".encode()
    with answering(lambda connection: connection.sendall(HEAD + b"\r\n" + page)) as url:
        assert podium("qos", "--url", url).out == "CONTROLLER\n\\x1b[2Jweb\\u202e\n"

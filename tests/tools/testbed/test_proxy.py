import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tools.testbed.proxy import TcpProxy


@pytest.fixture
def proxy() -> Iterator[TcpProxy]:
    """A proxy in front of a server that sends back what it gets."""
    listener = socket.create_server(("127.0.0.1", 0))

    def echo(connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(4096):
                    connection.sendall(data)
            except OSError:
                pass

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=echo, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    with TcpProxy(f"http://127.0.0.1:{listener.getsockname()[1]}") as running:
        yield running
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def connected(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def said_back(connection: socket.socket, text: bytes) -> bytes:
    connection.sendall(text)
    return connection.recv(4096)


def test_bytes_pass_both_ways(proxy: TcpProxy) -> None:
    with connected(proxy) as connection:
        assert said_back(connection, b"hello") == b"hello"
        assert (proxy.accepted, proxy.connections) == (1, 1)


def test_a_cut_resets_what_is_open_and_welcomes_what_is_new(proxy: TcpProxy) -> None:
    with connected(proxy) as connection:
        assert said_back(connection, b"hello") == b"hello"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            connection.recv(10)
    with connected(proxy) as connection:
        assert said_back(connection, b"again") == b"again"


def test_refused_until_accepted_again_at_the_same_port(proxy: TcpProxy) -> None:
    port = proxy.port
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        connected(proxy)
    proxy.accept()
    assert proxy.port == port
    with connected(proxy) as connection:
        assert said_back(connection, b"hello") == b"hello"


def test_a_stall_holds_back_what_is_open_and_resuming_delivers_it(proxy: TcpProxy) -> None:
    with connected(proxy) as stalled, connected(proxy) as other:
        assert said_back(stalled, b"1") == said_back(other, b"1") == b"1"
        proxy.stall()
        with connected(proxy) as new:
            assert said_back(new, b"new ones flow") == b"new ones flow"
        stalled.sendall(b"2")
        stalled.settimeout(0.05)
        with pytest.raises(TimeoutError):
            stalled.recv(10)
        proxy.resume()
        stalled.settimeout(10)
        assert stalled.recv(10) == b"2"


def test_a_stall_of_new_connections_too(proxy: TcpProxy) -> None:
    proxy.stall(new=True)
    with connected(proxy) as connection:
        connection.sendall(b"hello")
        connection.settimeout(0.05)
        with pytest.raises(TimeoutError):
            connection.recv(10)


def test_a_delay_holds_up_each_piece(proxy: TcpProxy) -> None:
    proxy.delay(0.05)
    with connected(proxy) as connection:
        began = time.monotonic()
        assert said_back(connection, b"hello") == b"hello"
        assert time.monotonic() - began >= 0.1  # there and back


def test_truncation_ends_a_connection_in_the_middle_of_an_answer(proxy: TcpProxy) -> None:
    proxy.truncate(7)
    with connected(proxy) as connection:
        assert said_back(connection, b"hello") == b"hello"
        assert said_back(connection, b"hello") == b"he"
        assert connection.recv(10) == b""

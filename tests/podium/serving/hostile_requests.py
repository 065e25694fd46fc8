"""Requests whose credentials are good enough to be quoted, and wrong enough to be an error."""

import socket
import ssl
import time

PLANTED = "pl4nted"
"""Part of every secret, so that one search finds all of them."""
UNKNOWN = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer pl4nted-unknown\r\nConnection: close\r\n\r\n"
HEADS = (
    b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer pl4nted-\x01bad\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Api-Key pl4nted-no-colon\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: x\r\nCookie: pl4nted=" + b"x" * 20_000 + b"\r\n\r\n",
    b"GET /pl4nted\x7f HTTP/9.9\r\nAuthorization: Basic pl4nted\r\n\r\n",
    b"\x16\x03\x01pl4nted Authorization: Bearer pl4nted\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer pl4nted\r\nTransfer-Encoding: chunked\r\n\r\npl4nted\r\n",
    UNKNOWN,
)


def send_hostile_requests(url: str) -> None:
    """Send each on a connection of its own, and wait until the server has done something about it."""
    scheme, _, address = url.partition("://")
    host, _, port = address.partition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for head in HEADS:
        connection = socket.create_connection((host, int(port)), timeout=5)
        if scheme == "https":
            connection = context.wrap_socket(connection)
        with connection:
            connection.sendall(head)
            deadline = time.monotonic() + 5
            try:
                while time.monotonic() < deadline and connection.recv(4096):
                    pass
            except (ConnectionError, TimeoutError):
                continue

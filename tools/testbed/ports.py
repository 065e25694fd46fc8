"""Ports of loopback for programs that cannot be handed a socket."""

import random
import socket

LOOPBACK = "127.0.0.1"

# Below the range from which the kernel gives ports to outgoing connections, of which tests make thousands.
_PORTS = range(12000, 32000)


def free_port() -> int:
    """A port without a listener. It is free between choice and use, so another process may get it first."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port

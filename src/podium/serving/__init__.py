"""Serves what all processes share: election, events, endpoints, logs, certificates, health, metrics, signals.

The drivers do not import each other; what they share about serving stands here.
"""

from podium.errors import UserError


class ServingError(UserError):
    """Something cannot be served: one sentence says why."""


def address(host: str, port: int) -> str:
    """
    >>> address("0.0.0.0", 10259), address("::1", 80)
    ('0.0.0.0:10259', '[::1]:80')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

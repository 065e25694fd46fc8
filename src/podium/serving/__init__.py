"""Serves what all processes share: election, events, endpoints, logs, certificates, health, metrics, signals.

The drivers do not import each other; what they share about serving stands here.
"""


class ServingError(Exception):
    """Something cannot be served: one sentence says why."""

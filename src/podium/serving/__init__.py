"""What every process that serves has in common: its log, its certificate, TLS, health, metrics, and how it is stopped.

The drivers do not import each other; what they share about serving stands here.
"""


class ServingError(Exception):
    """Something cannot be served: one sentence says why."""

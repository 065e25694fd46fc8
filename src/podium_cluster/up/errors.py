"""Defines the error that ends `podium up` with one sentence."""


class UpError(Exception):
    """Why the cluster cannot come up, in one sentence."""

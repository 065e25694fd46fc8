"""Runs a whole cluster in one process: API, controllers, nodes, scheduler and a workload (podium up)."""


class UpError(Exception):
    """Why the cluster cannot come up, in one sentence."""

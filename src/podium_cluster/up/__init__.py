"""Runs a whole cluster in one process: API, controllers, nodes, scheduler and a workload (podium up)."""

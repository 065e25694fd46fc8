"""Benchmarks of the engine in process: no API server, no network, only the scheduler's own work.

`suite` names the workloads, `runner` runs one and measures it, `processes` gives each a process of its own, `growth`
asks how the cost of a decision grows with the cluster, and `report` shows all that and compares it with an earlier run.
"""

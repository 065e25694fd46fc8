"""Benchmarks of the engine in process, without API server or network, and of the whole scheduler on a real API server.

`suite` names the workloads, `runner` runs one and measures it, `processes` gives each a process of its own, `growth`
asks how the cost of a decision grows with the cluster, and `report` shows all that and compares it with an earlier run.
`e2e` lets Podium and kube-scheduler bind the same pods on the same API server.
"""

"""A Kubernetes API in memory, its controllers and nodes, and `podium up`."""

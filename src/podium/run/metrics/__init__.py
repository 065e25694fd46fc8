"""Serves kube-scheduler's metrics, and Podium's own."""

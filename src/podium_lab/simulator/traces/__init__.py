"""Reads workloads: one module per format, each giving pods in the order they arrive."""

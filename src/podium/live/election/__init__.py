"""Elects one leader among several schedulers by a Lease."""

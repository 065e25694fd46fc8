"""Elects one leader among several processes by a Lease."""

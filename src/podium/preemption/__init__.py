"""Searches for pods to evict so that a more important pod fits."""

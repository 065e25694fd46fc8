"""Arithmetic on the measured load of nodes that several plugins share: distributions, queries, recent pods."""

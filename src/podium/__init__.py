"""Podium decides where Kubernetes pods run, and lets you change how that is decided, in Python."""

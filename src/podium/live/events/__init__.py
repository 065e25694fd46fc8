"""Writes Kubernetes Events about pods."""

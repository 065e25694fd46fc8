"""Writes Kubernetes Events about pods and other objects."""

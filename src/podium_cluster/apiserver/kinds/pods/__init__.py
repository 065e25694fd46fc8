"""Defaults, admits and checks pods as kube-apiserver does, and shows them as rows of a table."""

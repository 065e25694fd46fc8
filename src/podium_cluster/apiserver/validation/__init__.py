"""Checks that several kinds share: causes in the order and words of kube-apiserver.

Only what people meet is checked; docs/reference/embedded-api.md lists the rest.
"""

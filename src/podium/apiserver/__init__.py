"""The embedded Kubernetes API: a small API server in this process, for clusters that exist only in memory.

What a request does is api.py, without any I/O; serving.py moves the bytes. Answers, errors included, are those of
kube-apiserver v1.36, and one suite of contract tests runs against both.
"""

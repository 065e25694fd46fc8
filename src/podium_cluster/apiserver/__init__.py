"""The embedded Kubernetes API: a small API server in this process, for clusters that exist only in memory.

A request goes one way: http/ reads it, writes/ checks and carries out what it changes, store/ keeps it, and
presentation/ makes the answer. api.py offers the same verbs to callers in this process. Beside it, builtin_controllers/
does what kube-controller-manager does and kubelets/ are the nodes. Answers, errors included, are those of
kube-apiserver v1.36, and one suite of contract tests runs against both.
"""

"""The Kubernetes objects that run Podium's processes in a cluster, each with the least rights it can do with.

One module for each process (`run`, `extender`, `annotate`, `controller`) says what it needs; `rights` and `workload`
make roles and Deployments of that in one way for all.
"""

"""The controllers of the embedded cluster: what kube-controller-manager does, in this process.

One worker serves them all in turn, so their writes have one order, which a seed reproduces.
"""

from podium_cluster.controllers.controllers import Controllers

__all__ = ["Controllers"]

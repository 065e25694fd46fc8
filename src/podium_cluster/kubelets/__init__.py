"""The nodes of the embedded cluster and what runs on them."""

from podium_cluster.kubelets.kubelets import Kubelets
from podium_cluster.kubelets.shapes import DeviceShape, NodeShape

__all__ = ["DeviceShape", "Kubelets", "NodeShape"]

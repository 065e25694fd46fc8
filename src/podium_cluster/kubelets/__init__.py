"""The nodes of the embedded cluster and what runs on them."""

from podium_cluster.kubelets.device_shapes import DeviceShape
from podium_cluster.kubelets.kubelets import Kubelets
from podium_cluster.kubelets.shapes import NodeShape

__all__ = ["DeviceShape", "Kubelets", "NodeShape"]

"""The nodes of the embedded cluster and what runs on them."""

from podium.apiserver.kubelets.device_shapes import DeviceShape
from podium.apiserver.kubelets.kubelets import Kubelets
from podium.apiserver.kubelets.shapes import NodeShape

__all__ = ["DeviceShape", "Kubelets", "NodeShape"]

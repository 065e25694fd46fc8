"""The nodes of the embedded cluster and what runs on them."""

from podium.apiserver.kubelets.kubelets import Kubelets
from podium.apiserver.kubelets.shapes import NodeShape

__all__ = ["Kubelets", "NodeShape"]

"""Shares the GPUs of nodes among pods, in thousandths of a device: GpuShare, and six ways to score nodes for it.

GpuShare keeps pods off nodes without enough GPU, chooses devices and writes them to the pod. The scores are those that
the paper on fragmentation gradient descent (ATC'23) compares: enable one of them beside GpuShare. With each of them,
ties go to the first node, so that equal nodes are filled one after the other.
"""

from podium_plugins.gpu_share.best_fit import GpuBestFit
from podium_plugins.gpu_share.clustering import GpuClustering
from podium_plugins.gpu_share.dot_prod import GpuDotProd
from podium_plugins.gpu_share.fgd import GpuFGD
from podium_plugins.gpu_share.packing import GpuPacking
from podium_plugins.gpu_share.plugin import GpuShare
from podium_plugins.gpu_share.random_node import GpuRandom

__all__ = [
    "GpuBestFit",
    "GpuClustering",
    "GpuDotProd",
    "GpuFGD",
    "GpuPacking",
    "GpuRandom",
    "GpuShare",
]

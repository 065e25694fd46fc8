"""Makes nodes for a cluster that has none: ordinary workers, some large ones, a few with a GPU, in three zones."""

from typing import Final

from podium_cluster.kubelets.shapes import NodeShape

SAMPLE_NODES: Final = 12
_EVERY_LARGE: Final = 4
_EVERY_GPU: Final = 12
_GPU_TAINT: Final = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def sample_shapes(count: int) -> list[NodeShape]:
    """So many nodes in all: of twelve, one has a GPU and two are large."""
    gpus = count // _EVERY_GPU
    large = count // _EVERY_LARGE - gpus
    shapes = [
        NodeShape(name="worker", count=count - large - gpus, cpu="4", memory="16Gi", instance_type="worker"),
        NodeShape(name="large", count=large, cpu="8", memory="32Gi", instance_type="large"),
        NodeShape(
            name="gpu",
            count=gpus,
            cpu="8",
            memory="32Gi",
            resources={"nvidia.com/gpu": "1"},
            instance_type="gpu",
            taints=(_GPU_TAINT,),
        ),
    ]
    return [shape for shape in shapes if shape.count]

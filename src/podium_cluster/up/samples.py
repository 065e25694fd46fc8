"""Makes nodes and devices for a cluster that has none: ordinary workers, some large nodes, a few with a GPU, in three
zones; and reads devices that a file describes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from podium.kube.documents import FILE, DocumentError, read_file, read_yaml
from podium_cluster.kubelets.device_shapes import MOST_ON_NODE, DeviceShape
from podium_cluster.kubelets.shapes import NodeShape

_MODELS: Final = (("worker-*", "t4", "16Gi"), ("large-*", "a100", "40Gi"), ("gpu-*", "h100", "80Gi"))
_VERSION: Final = {"version": "1.36.0"}
_EXAMPLE: Final = (
    'write a list such as [{nodes: "large-*", count: 8, attributes: {model: a100}, capacity: {memory: 40Gi}}]'
)
SAMPLE_NODES: Final = 12
_EVERY_LARGE: Final = 4
_EVERY_GPU: Final = 12
_GPU_TAINT: Final = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


class DeviceFileError(ValueError):
    """Devices that cannot be read; the text says where and why."""


def sample_devices(count: int) -> list[DeviceShape]:
    """So many GPUs on every sample node: small ones on ordinary nodes, larger ones on large nodes."""
    return [
        DeviceShape(
            nodes=nodes,
            count=count,
            attributes={"model": model, "driverVersion": _VERSION},
            capacity={"memory": memory},
        )
        for nodes, model, memory in _MODELS
    ]


def read_shapes(path: Path) -> list[DeviceShape]:
    """The devices that a YAML file lists."""
    try:
        found: Any = read_yaml(read_file(path), str(path), bounds=FILE)
        shapes = msgspec.convert(found, list[DeviceShape])
    except OSError as error:
        raise DeviceFileError(f"{path}: cannot be read: {error.strerror}; give a number or a file") from None
    except DocumentError as error:
        raise DeviceFileError(str(error)) from None
    except msgspec.ValidationError as error:
        raise DeviceFileError(f"{path}: {error}; {_EXAMPLE}") from None
    for shape in shapes:
        if not 0 <= shape.count <= MOST_ON_NODE:
            raise DeviceFileError(f"{path}: count {shape.count}: write a number from 0 to {MOST_ON_NODE}")
    return shapes


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

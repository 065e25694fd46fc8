"""Makes GPUs for the nodes of a cluster that has none, and reads devices that a file describes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from podium.kube.documents import FILE, DocumentError, read_file, read_yaml
from podium_cluster.kubelets.device_shapes import MOST_ON_NODE, DeviceShape

_MODELS: Final = (("worker-*", "t4", "16Gi"), ("large-*", "a100", "40Gi"), ("gpu-*", "h100", "80Gi"))
_VERSION: Final = {"version": "1.36.0"}
_EXAMPLE: Final = (
    'write a list such as [{nodes: "large-*", count: 8, attributes: {model: a100}, capacity: {memory: 40Gi}}]'
)


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

"""Reads a workload: the manifests of a file or of every file in a folder, in the order in which they can be created.

Namespaces, definitions of custom kinds and priority classes come first, whatever file they are in, since the others
need them; then everything else as written.

`sample_shapes` makes nodes and devices for a cluster that has none: ordinary workers, some large nodes, a few with a
GPU, in three zones; and reads devices that a file describes.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from podium.kube.documents import FILE, DocumentError, read_documents, read_file, read_json, read_yaml
from podium.kube.json_object import JsonObject
from podium_cluster.kubelets.shapes import MOST_ON_NODE, DeviceShape, NodeShape


class Manifest(NamedTuple):
    """An object and the file that it is in."""

    file: Path
    obj: JsonObject

    @property
    def api_kind(self) -> tuple[str, str]:
        """The apiVersion and the kind."""
        return self.obj["apiVersion"], self.obj["kind"]

    @property
    def name(self) -> str:
        metadata = self.obj.get("metadata")
        return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


SAMPLE: Final = Path(str(files("podium") / "samples" / "workload.yaml"))
_DEVICE_SAMPLE: Final = SAMPLE.with_name("device-workload.yaml")
_ENDINGS: Final = (".yaml", ".yml", ".json")
_FIRST: Final = ("Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "DeviceClass", "Node")


class WorkloadError(ValueError):
    """A workload that cannot be read; the text says where and why."""


def sample_workload(*, devices: bool = False) -> list[Manifest]:
    """The sample, and where nodes have devices what asks for some."""
    return read_workload(SAMPLE) + (read_workload(_DEVICE_SAMPLE) if devices else [])


def read_workload(path: Path) -> list[Manifest]:
    """Every object of the file, or of the folder's .yaml, .yml and .json files."""
    files = _files(path)
    found = [Manifest(file, obj) for file in files for obj in _objects(file)]
    if not found:
        raise WorkloadError(f"{path}: no objects in it; give a file or a folder with Kubernetes manifests")
    return sorted(found, key=lambda each: _FIRST.index(each.obj["kind"]) if each.obj["kind"] in _FIRST else len(_FIRST))


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in _ENDINGS and file.is_file())
    if not path.exists():
        raise WorkloadError(f"{path}: there is no such file or folder")
    return [path]


def _objects(file: Path) -> Iterator[JsonObject]:
    try:
        documents = [read_json(each.data, bounds=FILE) for each in read_documents(read_file(file), str(file))]
    except OSError as error:
        raise WorkloadError(f"{file}: cannot be read: {error.strerror}") from None
    except DocumentError as error:
        raise WorkloadError(str(error)) from None
    for number, document in enumerate(documents, start=1):
        yield from _checked(document, f"{file}: document {number}")


def _checked(document: Any, where: str) -> Iterator[JsonObject]:
    if not isinstance(document, dict):
        raise WorkloadError(f"{where}: not an object; write apiVersion, kind and metadata")
    if document.get("kind") == "List" or (str(document.get("kind", "")).endswith("List") and "items" in document):
        for item in document.get("items") or ():
            yield from _checked(item, where)
        return
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise WorkloadError(f"{where}: {field} is missing; write apiVersion, kind and metadata")
    yield document


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

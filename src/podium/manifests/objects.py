"""Builds objects by their kind and name, and writes them as YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from podium.kube.json_object import JsonObject
from podium.packages import version

IMAGE = f"podium:{version()}"


def head(
    version: str, kind: str, name: str, namespace: str = "", labels: Mapping[str, str] | None = None
) -> JsonObject:
    """An object with nothing but its kind and its name."""
    metadata: JsonObject = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def to_yaml(objects: Iterable[JsonObject]) -> str:
    """The objects as one stream of documents, made to be read."""
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Text of several lines as such, lists of words on one line, nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    words = all(isinstance(each, str) for each in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=words)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)

"""Reads what a cluster has beside nodes and pods: PodGroups, quotas, volumes, services, budgets.

Kinds that the engine knows are decoded; objects of other groups are custom resources, which plugins follow by name
("podgroups.scheduling.x-k8s.io").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from podium.engine.intake import Intake
from podium.kube import Node, Pod, decode_documents
from podium.kube.custom_object import CLUSTER_SCOPED, CUSTOM_KINDS
from podium.kube.documents import read_documents
from podium_lab.simulator.scenario import ScenarioError


class CustomItem(NamedTuple):
    """An object of a kind that only some plugin knows."""

    resource: str
    key: str
    value: dict[str, Any]


def set_objects(path: Path, intake: Intake) -> None:
    """Takes in the objects of a file; nodes and pods in it are left out, because they come from elsewhere."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}:1: not UTF-8 text; save the file as UTF-8") from None
    for known in decode_documents(text, str(path)).objects:
        if not isinstance(known, (Node, Pod)):
            intake.set(known)
    for custom in read_custom(text, str(path)):
        intake.set_custom(custom.resource, custom.key, custom.value)


def left_out(path: Path) -> Counter[str]:
    """The kinds of a file that nothing reads, and how many objects of each there are; nodes and pods among them."""
    text = path.read_text(encoding="utf-8-sig")
    decoded = decode_documents(text, str(path))
    custom = Counter(
        f"{each.value.get('apiVersion')} {each.value.get('kind')}" for each in read_custom(text, str(path))
    )
    elsewhere = Counter(type(each).__name__ for each in decoded.objects if isinstance(each, (Node, Pod)))
    return decoded.skipped - custom + elsewhere


def read_custom(text: str, source: str) -> Iterator[CustomItem]:
    """The custom resources of a file."""
    for document in read_documents(text, source):
        value = msgspec.json.decode(document.data)
        for item in value.get("items") or () if str(value.get("kind", "")).endswith("List") else (value,):
            group, _, version = str(item.get("apiVersion", "")).rpartition("/")
            known = CUSTOM_KINDS.get((str(item.get("apiVersion", "")), str(item.get("kind", ""))))
            builtin = "." not in group or (group.endswith(".k8s.io") and not group.endswith(".x-k8s.io"))
            if not version or (builtin and known is None):
                continue
            metadata = item.get("metadata") or {}
            if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
                raise ScenarioError(f"{source}:{document.line_of('$')}: {item.get('kind')}: expected metadata.name")
            key = f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
            if item.get("kind") in CLUSTER_SCOPED:
                key = metadata["name"]
            yield CustomItem(known or f"{str(item.get('kind', '')).lower()}s.{group}", key, item)

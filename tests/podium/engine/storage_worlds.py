"""Random storage for driving a scheduler: claims in every state, their volumes, limits, and how it all moves.

Claim names are few, so that pods of one template come with equal claims, with others, and with some that do not exist.
"""

from __future__ import annotations

import random
from typing import Any

from podium.kube import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from podium.kube import VolumeAttachment as Attachment
from tools.kit.storage import (
    HOSTNAME,
    ZONE,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)

DRIVER = "csi.example.test"
EBS = "ebs.csi.aws.com"
EBS_PLUGIN = "kubernetes.io/aws-ebs"
CLAIMS = ("plain", "one", "two", "three", "alone", "pinned", "zoned", "disk", "broken", "late", "static", "missing")

Storage = (
    PersistentVolumeClaim | PersistentVolume | StorageClass | CSINode | CSIDriver | CSIStorageCapacity | Attachment
)


def volumes_of(rng: random.Random) -> list[dict[str, Any]]:
    """The volumes of a template: claims to be named per pod, a disk of its own, a claim made for the pod."""
    claims = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": "?"}} for number in range(rng.randint(1, 2))
    ]
    others: list[dict[str, Any]] = [
        {"name": "disk", "gcePersistentDisk": {"pdName": "shared", "readOnly": rng.random() < 0.5}},
        {"name": "ebs", "awsElasticBlockStore": {"volumeID": "vol-inline"}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]
    return [*claims, *(each for each in others if rng.random() < 0.15)]


def with_claims(volumes: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """The same volumes with the claims of one pod."""
    rng = random.Random(number)
    return [
        {**volume, "persistentVolumeClaim": {"claimName": rng.choice(CLAIMS)}}
        if "persistentVolumeClaim" in volume
        else volume
        for volume in volumes
    ]


def first_storage(rng: random.Random) -> list[Storage]:
    found: list[Storage] = [
        make_class(),
        make_class("static", provisioner="kubernetes.io/no-provisioner"),
        make_driver(DRIVER, capacity=rng.random() < 0.5),
        make_capacity(topology={"matchLabels": {ZONE: "a"}}),
    ]
    for number in range(3):
        node = f"n{number}"
        found.append(make_volume(f"local-{number}", storage_class="static", affinity={HOSTNAME: [node]}))
    for name in CLAIMS[:-1]:
        found += claim_and_volume(rng, name)
    return found


def claim_and_volume(rng: random.Random, name: str) -> list[Storage]:
    """A claim in the state its name says, with its volume if it has one."""
    if name in ("late", "static"):
        return [make_claim(name, storage_class=name)]
    modes = ("ReadWriteOncePod",) if name == "alone" else ("ReadWriteOnce",)
    claim = make_claim(name, volume=f"pv-{name}", modes=modes)
    more: dict[str, Any] = {"driver": rng.choice((DRIVER, DRIVER, EBS))}
    if name == "pinned":
        more["affinity"] = {HOSTNAME: [f"n{rng.randint(0, 4)}"]}
    elif name == "zoned":
        more["labels"] = {ZONE: rng.choice(("a", "b"))}
    elif name == "disk":
        more = {"spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}, "labels": {ZONE: rng.choice(("a", "b"))}}
    elif name == "broken":
        more = {"spec": {"awsElasticBlockStore": {"volumeID": "aws://nonsense"}}}
    elif name == "plain":
        more = {}
    return [claim, make_volume(f"pv-{name}", claim=claim, phase="Bound", **more)]


def change(rng: random.Random, nodes: list[str]) -> tuple[Storage, bool]:
    """Something that comes (True) or goes: a node's limits, a claim or its volume, an attachment."""
    roll, name = rng.random(), rng.choice(CLAIMS)
    node = rng.choice(nodes) if nodes else "n0"
    if roll < 0.4:
        limits = {driver: rng.choice((0, 1, 1, 2, None)) for driver in (DRIVER, EBS) if rng.random() < 0.7}
        migrated = (EBS_PLUGIN,) if rng.random() < 0.4 else ()
        return make_csi_node(node, limits, migrated=migrated), rng.random() < 0.8
    if roll < 0.5:
        return make_attachment(
            f"a{rng.randint(0, 2)}", f"pv-{name}", node, rng.choice((DRIVER, ""))
        ), rng.random() < 0.6
    if roll < 0.6:
        return make_capacity(capacity=rng.choice(("1Mi", "10Gi")), topology={"matchLabels": {ZONE: "b"}}), True
    changed = claim_and_volume(rng, name)
    return rng.choice(changed), rng.random() < 0.75

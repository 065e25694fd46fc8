"""Random storage: classes, volumes, claims in every state, drivers with limits and capacities.

A claim is made by a recipe: the claim, the volume behind it if any, and which state both are in. Pods pick claims of
their namespace by name from the inventory. Volume sizes are all different, because among equal ones the choice of
kube-scheduler follows the iteration order of a Go map.
"""

from dataclasses import dataclass, field

from tools.parity.dice import (
    BETA_ZONE,
    GIB,
    HOSTNAME,
    MIB,
    NAMESPACES,
    REGION,
    ZONE,
    ZONES,
    Dice,
    Obj,
)

DRIVER = "csi.example.test"
TIGHT_DRIVER = "tight.example.test"  # publishes storage capacity
GCE_DRIVER, EBS_DRIVER = "pd.csi.storage.gke.io", "ebs.csi.aws.com"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
HOLD = "example.test/hold"  # a finalizer that keeps a deleted object in the API

CLASSES = {
    "immediate": (DRIVER, "Immediate"),
    "late": (DRIVER, "WaitForFirstConsumer"),
    "tight": (TIGHT_DRIVER, "WaitForFirstConsumer"),
    "zonal": (DRIVER, "WaitForFirstConsumer"),
    "local": ("kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
    "gce": ("kubernetes.io/gce-pd", "WaitForFirstConsumer"),
}

CLAIM_KINDS = {
    "bound": 5.0,
    "bound-zonal-affinity": 3.0,
    "bound-zonal-label": 5.0,
    "bound-once-pod": 4.0,
    "bound-gce": 2.0,
    "bound-missing-volume": 2.0,
    "immediate": 0.8,
    "late": 3.0,
    "late-huge": 1.0,
    "late-selected": 1.0,
    "tight": 3.0,
    "zonal": 2.0,
    "local": 7.0,
    "local-prebound": 1.0,
    "gce": 1.0,
    "preset": 0.5,
    "lost": 0.6,
    "deleting": 0.6,
    "no-class": 0.4,
    "missing-class": 0.4,
}


@dataclass
class Storage:
    """The storage objects of one cluster, and the names of claims by namespace."""

    objects: list[Obj] = field(default_factory=list)
    terminating: list[Obj] = field(default_factory=list)
    claims: dict[str, list[str]] = field(default_factory=lambda: {namespace: [] for namespace in NAMESPACES})
    disk_kinds: list[str] = field(default_factory=list)  # few in one cluster, or pods would never want the same disk


def make_storage(dice: Dice, nodes: list[Obj], theme: str) -> Storage:
    storage = Storage(disk_kinds=dice.some(("gce", "ebs", "iscsi", "rbd", "azure"), 1, 2))
    storage.objects += _classes(dice)
    storage.objects += _drivers(dice, theme)
    storage.objects += _csi_nodes(dice, nodes, theme)
    sizes = list(range(1, 400))
    dice.shuffle(sizes)
    zones = [node["metadata"]["labels"].get(ZONE) for node in nodes]
    for index in range(dice.randint(5, 10) if theme == "volumes" else dice.randint(0, 4)):
        _add_claim(dice, storage, index, sizes.pop(), [zone for zone in zones if zone] or list(ZONES), nodes)
    for index in range(dice.randint(1, 6) if theme == "volumes" else dice.randint(0, 1)):
        storage.objects.append(_local_volume(dice, f"local-{index}", sizes.pop(), nodes))
    storage.objects += _capacities(dice)
    storage.objects += _attachments(dice, nodes, storage)
    return storage


def _classes(dice: Dice) -> list[Obj]:
    classes = []
    for name, (provisioner, mode) in CLASSES.items():
        made: Obj = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
        }
        if name == "zonal":
            made["allowedTopologies"] = [
                {"matchLabelExpressions": [{"key": key, "values": values}]}
                for key, values in dice.some(((ZONE, dice.some(ZONES, 1, 2)), ("disk", ["ssd"])), 1, 2)
            ]
        classes.append(made)
    return classes


def _drivers(dice: Dice, theme: str) -> list[Obj]:
    drivers = []
    for name, capacity in ((DRIVER, False), (TIGHT_DRIVER, True)):
        if name == TIGHT_DRIVER and theme != "volumes" and dice.chance(0.3):
            continue  # without the driver's object capacity is not looked at
        drivers.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSIDriver",
                "metadata": {"name": name},
                "spec": {"attachRequired": True, "storageCapacity": capacity},
            }
        )
    return drivers


def _csi_nodes(dice: Dice, nodes: list[Obj], theme: str) -> list[Obj]:
    made = []
    for node in nodes:
        if dice.chance(0.15):
            continue
        drivers = []
        for name in (DRIVER, TIGHT_DRIVER, GCE_DRIVER, EBS_DRIVER):
            if not dice.chance(0.85):
                continue
            driver: Obj = {"name": name, "nodeID": node["metadata"]["name"], "topologyKeys": [ZONE]}
            if dice.chance(0.7 if theme == "volumes" else 0.4):
                driver["allocatable"] = {"count": dice.pick((0, 1, 1, 2, 3, 25))}
            drivers.append(driver)
        metadata: Obj = {"name": node["metadata"]["name"]}
        migrated = dice.some(("kubernetes.io/gce-pd", "kubernetes.io/aws-ebs", "kubernetes.io/azure-disk"), 0, 3)
        if migrated:
            metadata["annotations"] = {MIGRATED: ",".join(migrated)}
        made.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": metadata,
                "spec": {"drivers": drivers},
            }
        )
    return made


def _capacities(dice: Dice) -> list[Obj]:
    made = []
    for index in range(dice.randint(0, 4)):
        capacity: Obj = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"capacity-{index}", "namespace": dice.pick(NAMESPACES)},
            "storageClassName": dice.pick(("tight", "tight", "late")),
            "capacity": f"{dice.pick((1, 20, 200))}Gi",
        }
        if dice.chance(0.9):
            capacity["nodeTopology"] = dice.pick(
                (
                    {"matchLabels": {ZONE: dice.pick(ZONES)}},
                    {"matchExpressions": [{"key": ZONE, "operator": "Exists"}]},
                    {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
                    {},
                )
            )
        if dice.chance(0.3):
            capacity["maximumVolumeSize"] = f"{dice.pick((1, 50))}Gi"
        made.append(capacity)
    return made


def _attachments(dice: Dice, nodes: list[Obj], storage: Storage) -> list[Obj]:
    volumes = [each["metadata"]["name"] for each in storage.objects if each["kind"] == "PersistentVolume"]
    made = []
    for index in range(dice.randint(0, 4)):
        source = dice.pick([*volumes, "gone-volume"])
        made.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": {"name": f"attachment-{index}"},
                "spec": {
                    "attacher": dice.pick((DRIVER, DRIVER, TIGHT_DRIVER)),
                    "nodeName": dice.pick(nodes)["metadata"]["name"],
                    "source": {"persistentVolumeName": source},
                },
            }
        )
    return made


def _add_claim(dice: Dice, storage: Storage, index: int, size: int, zones: list[str], nodes: list[Obj]) -> None:
    kind = dice.weighted(CLAIM_KINDS)
    name = f"claim-{index}"
    namespace = NAMESPACES[0] if dice.chance(0.8) else NAMESPACES[1]
    claim = _claim(name, namespace, f"{size}Mi", "late")
    storage.claims[namespace].append(name)
    if kind.startswith("bound") or kind == "lost":
        volume = _volume(f"volume-{index}", f"{size}Mi", DRIVER)
        _decorate_bound(dice, kind, claim, volume, zones, nodes)
        _bind(claim, volume)
        if kind == "lost":
            claim["status"]["phase"] = "Lost"
        if kind not in ("bound-missing-volume", "lost"):
            storage.objects.append(volume)
    elif kind == "immediate":
        claim["spec"]["storageClassName"] = "immediate"
    elif kind == "late-huge":
        claim["spec"]["resources"]["requests"]["storage"] = "900Gi"
        claim["spec"]["storageClassName"] = dice.pick(("late", "tight"))
    elif kind == "late-selected":
        claim["metadata"]["annotations"] = {SELECTED_NODE: dice.pick(nodes)["metadata"]["name"]}
    elif kind == "tight":
        claim["spec"]["resources"]["requests"]["storage"] = f"{dice.pick((1, 30, 300))}Gi"
        claim["spec"]["storageClassName"] = "tight"
    elif kind in ("zonal", "gce"):
        claim["spec"]["storageClassName"] = kind
    elif kind == "local":
        _decorate_local_claim(dice, claim)
    elif kind == "local-prebound":
        claim["spec"]["storageClassName"] = "local"
        volume = _local_volume(dice, f"volume-{index}", size + 1, nodes)
        volume["spec"]["claimRef"] = {"kind": "PersistentVolumeClaim", "name": name, "namespace": namespace}
        storage.objects.append(volume)
    elif kind == "preset":
        claim["spec"]["volumeName"] = f"volume-{index}"
    elif kind == "deleting":
        claim["metadata"]["finalizers"] = [HOLD]
        storage.terminating.append(claim)
    elif kind == "no-class":
        claim["spec"]["storageClassName"] = ""
    elif kind == "missing-class":
        claim["spec"]["storageClassName"] = "no-such-class"
    storage.objects.append(claim)


def _claim(name: str, namespace: str, size: str, storage_class: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }


def _volume(name: str, size: str, driver: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "storageClassName": "late",
            "csi": {"driver": driver, "volumeHandle": f"handle-{name}"},
        },
        "status": {"phase": "Available"},
    }


def _bind(claim: Obj, volume: Obj) -> None:
    claim["spec"]["volumeName"] = volume["metadata"]["name"]
    claim["metadata"].setdefault("annotations", {})[BIND_COMPLETED] = "yes"
    claim["status"] = {"phase": "Bound"}
    volume["spec"]["claimRef"] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "name": claim["metadata"]["name"],
        "namespace": claim["metadata"]["namespace"],
    }
    volume["status"] = {"phase": "Bound"}


def _decorate_bound(dice: Dice, kind: str, claim: Obj, volume: Obj, zones: list[str], nodes: list[Obj]) -> None:
    zone = dice.pick(zones)
    if kind == "bound-zonal-affinity":
        key, value = dice.pick(((ZONE, zone), (ZONE, "z9"), (HOSTNAME, dice.pick(nodes)["metadata"]["name"])))
        volume["spec"]["nodeAffinity"] = _node_affinity(key, [value])
    elif kind == "bound-zonal-label":
        value = dice.weighted({zone: 5, f"{zone}__z8": 2, "z9": 2})
        volume["metadata"]["labels"][dice.pick((ZONE, BETA_ZONE))] = value
        if dice.chance(0.3):
            volume["metadata"]["labels"][REGION] = dice.pick(("r1", "r2"))
    elif kind == "bound-once-pod":
        claim["spec"]["accessModes"] = volume["spec"]["accessModes"] = ["ReadWriteOncePod"]
    elif kind == "bound-gce":
        del volume["spec"]["csi"]
        if dice.chance(0.5):
            volume["spec"]["gcePersistentDisk"] = {"pdName": f"disk-{claim['metadata']['name']}"}
        else:
            volume["spec"]["awsElasticBlockStore"] = {"volumeID": f"vol-{claim['metadata']['name']}"}
        if dice.chance(0.5):
            volume["metadata"]["labels"][ZONE] = zone
            volume["metadata"]["labels"][REGION] = dice.pick(("r1", "r2"))
    elif kind == "bound" and dice.chance(0.3):
        volume["spec"]["csi"]["driver"] = TIGHT_DRIVER


def _decorate_local_claim(dice: Dice, claim: Obj) -> None:
    claim["spec"]["storageClassName"] = "local"
    if dice.chance(0.45):
        claim["spec"]["selector"] = {"matchLabels": {"speed": dice.pick(("fast", "slow"))}}
    if dice.chance(0.1):
        claim["spec"]["volumeMode"] = "Block"
    if dice.chance(0.15):
        claim["spec"]["accessModes"] = dice.pick((["ReadWriteMany"], ["ReadOnlyMany"]))


def _local_volume(dice: Dice, name: str, size: int, nodes: list[Obj]) -> Obj:
    volume = _volume(name, f"{size}Mi", DRIVER)
    del volume["spec"]["csi"]
    volume["spec"]["local"] = {"path": f"/mnt/{name}"}
    volume["spec"]["storageClassName"] = "local"
    labels = dice.pick(nodes)["metadata"]["labels"]
    key = dice.pick((HOSTNAME, ZONE))
    volume["spec"]["nodeAffinity"] = _node_affinity(key, [labels.get(key, "z1")])
    if dice.chance(0.5):
        volume["metadata"]["labels"]["speed"] = dice.pick(("fast", "slow"))
    if dice.chance(0.15):
        volume["spec"]["volumeMode"] = "Block"
    if dice.chance(0.2):
        volume["spec"]["accessModes"] = ["ReadWriteOnce", "ReadOnlyMany"]
    if dice.chance(0.1):
        volume["status"] = {"phase": "Released"}
    return volume


def _node_affinity(key: str, values: list[str]) -> Obj:
    expression = {"key": key, "operator": "In", "values": values}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def pod_volumes(dice: Dice, storage: Storage, namespace: str, pod_name: str) -> tuple[list[Obj], list[Obj]]:
    """The volumes of one pod, and the claims that must be created with the pod as their owner."""
    volumes: list[Obj] = []
    owned: list[Obj] = []
    for index in range(dice.weighted({1: 5, 2: 4, 3: 1})):
        name = f"vol-{index}"
        kind = dice.weighted({"claim": 9, "disk": 4, "ephemeral": 1.2, "other": 0.7, "missing": 0.2})
        if kind == "claim" and storage.claims[namespace]:
            favourites = storage.claims[namespace][:3] if dice.chance(0.4) else storage.claims[namespace]
            claim = dice.pick(favourites)
            if any(each.get("persistentVolumeClaim", {}).get("claimName") == claim for each in volumes):
                continue
            volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        elif kind == "disk":
            volumes.append({"name": name, **_inline_disk(dice, storage.disk_kinds)})
        elif kind == "ephemeral":
            volumes.append(_ephemeral(name))
            if dice.chance(0.6):
                owned.append(_owned_claim(dice, f"{pod_name}-{name}", namespace, pod_name))
        elif kind == "missing":
            volumes.append({"name": name, "persistentVolumeClaim": {"claimName": "no-such-claim"}})
        else:
            volumes.append({"name": name, **dice.pick(({"emptyDir": {}}, {"configMap": {"name": "settings"}}))})
    return volumes, owned


def _inline_disk(dice: Dice, kinds: list[str]) -> Obj:
    number = dice.randint(1, 2)
    read_only = {"readOnly": True} if dice.chance(0.4) else {}
    kind = dice.pick(kinds)
    if kind == "gce":
        return {"gcePersistentDisk": {"pdName": f"pd-{number}", **read_only}}
    if kind == "ebs":
        return {"awsElasticBlockStore": {"volumeID": f"vol-{number}", **read_only}}
    if kind == "iscsi":
        target = {"targetPortal": "192.0.2.1:3260", "iqn": f"iqn.2024-01.test.example:disk{number}", "lun": 0}
        return {"iscsi": {**target, **read_only}}
    if kind == "rbd":
        monitors = dice.some(("192.0.2.7:6789", "192.0.2.8:6789", "192.0.2.9:6789"), 1, 2)
        return {"rbd": {"monitors": monitors, "pool": "kube", "image": f"image-{number}", **read_only}}
    uri = f"/subscriptions/x/disks/disk-{number}"
    return {"azureDisk": {"diskName": f"disk-{number}", "diskURI": uri, "kind": "Managed"}}


def _ephemeral(name: str) -> Obj:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": {"storage": str(64 * MIB)}},
    }
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def _owned_claim(dice: Dice, name: str, namespace: str, pod_name: str) -> Obj:
    claim = _claim(name, namespace, str(64 * MIB), dice.pick(("late", "late", "tight", "immediate")))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": "", "controller": True}
    claim["metadata"]["ownerReferences"] = [owner]
    return claim


def provisioned_volume(claim: Obj) -> Obj:
    """What a provisioner would make for a claim that the scheduler has given a node."""
    metadata = claim["metadata"]
    volume = _volume(f"made-{metadata['namespace']}-{metadata['name']}", f"{GIB}", DRIVER)
    volume["spec"]["capacity"] = dict(claim["spec"]["resources"]["requests"])
    volume["spec"]["storageClassName"] = claim["spec"]["storageClassName"]
    volume["spec"]["accessModes"] = claim["spec"]["accessModes"]
    return volume

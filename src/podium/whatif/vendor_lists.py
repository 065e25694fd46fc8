"""Reads lists of node types as others print them: Karpenter's KWOK list, and the commands of AWS, Google and Azure.

    Karpenter (KWOK)   a JSON array of {name, offerings, architecture, operatingSystems, resources}
    AWS                aws ec2 describe-instance-types
    Google             gcloud compute machine-types list --format=json
    Azure              az vm list-skus

The clouds' lists have what a machine has and no prices; a price list (name,zone,price) goes beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from podium.whatif.catalog import ARCH, ZONE, CatalogError, NodeType, allocatable_of, check_amounts

CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
GPU: Final = "nvidia.com/gpu"
FORMS: Final = (
    "write types: […], or give what Karpenter's KWOK list, aws ec2 describe-instance-types, "
    "gcloud compute machine-types list --format=json or az vm list-skus printed"
)


def types_of_list(value: Any, source: str) -> list[NodeType]:
    """The types in a list that others print; raises CatalogError for one that is not known."""
    listed = value.get("list") if isinstance(value, dict) and set(value) == {"list"} else value
    if isinstance(listed, dict) and isinstance(listed.get("InstanceTypes"), list):
        return [_of_aws(each, source) for each in listed["InstanceTypes"] if isinstance(each, dict)]
    if not isinstance(listed, list) or not listed or not all(isinstance(each, dict) for each in listed):
        raise CatalogError(f"{source}: no catalog of node types: {FORMS}")
    first = listed[0]
    try:
        if "offerings" in first:
            return [_of_karpenter(each, source) for each in listed]
        if "guestCpus" in first:
            return [_of_google(each, source) for each in listed]
        if "capabilities" in first or "resourceType" in first:
            return [_of_azure(each, source) for each in listed if each.get("resourceType") == "virtualMachines"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, CatalogError):
            raise
        raise CatalogError(f"{source}: a type of the list cannot be read: {type(error).__name__} {error}") from None
    raise CatalogError(f"{source}: no catalog of node types: {FORMS}")


def _of_karpenter(each: Mapping[str, Any], source: str) -> NodeType:
    prices: dict[str, float] = {}
    spot: list[float] = []
    for offering in each["offerings"]:
        if not offering.get("Available", True):
            continue
        required = {one["key"]: one.get("values") or [] for one in offering.get("Requirements") or ()}
        if "spot" in required.get(CAPACITY_TYPE, []):
            spot.append(float(offering["Price"]))
            continue
        for zone in required.get(ZONE) or [""]:
            prices[zone] = float(offering["Price"])
    check_amounts(each["resources"], f"{source}: type {each['name']}")
    return NodeType(
        str(each["name"]),
        dict(each["resources"]),
        min(prices.values(), default=None),
        min(spot, default=None),
        {ARCH: str(each.get("architecture", "amd64"))},
        zones=tuple(sorted(zone for zone in prices if zone)),
        zone_prices={zone: price for zone, price in prices.items() if zone},
        where=source,
    )


def _of_aws(each: Mapping[str, Any], source: str) -> NodeType:
    network = each.get("NetworkInfo") or {}
    interfaces = network.get("MaximumNetworkInterfaces")
    addresses = network.get("Ipv4AddressesPerInterface")
    pods = interfaces * (addresses - 1) + 2 if interfaces and addresses else 110
    capacity: dict[str, Any] = {
        "cpu": each["VCpuInfo"]["DefaultVCpus"],
        "memory": f"{each['MemoryInfo']['SizeInMiB']}Mi",
        "pods": pods,
    }
    gpus = sum(int(gpu.get("Count", 0)) for gpu in (each.get("GpuInfo") or {}).get("Gpus") or ())
    if gpus:
        capacity[GPU] = gpus
    name = str(each["InstanceType"])
    check_amounts(capacity, f"{source}: type {name}")
    architectures = (each.get("ProcessorInfo") or {}).get("SupportedArchitectures") or ["x86_64"]
    arch = "arm64" if "arm64" in architectures else "amd64"
    return NodeType(name, allocatable_of(capacity, "eks"), labels={ARCH: arch}, where=source)


def _of_google(each: Mapping[str, Any], source: str) -> NodeType:
    capacity: dict[str, Any] = {"cpu": each["guestCpus"], "memory": f"{each['memoryMb']}Mi", "pods": 110}
    gpus = sum(int(one.get("guestAcceleratorCount", 0)) for one in each.get("accelerators") or ())
    if gpus:
        capacity[GPU] = gpus
    name, zone = str(each["name"]), str(each.get("zone") or "").rpartition("/")[2]
    check_amounts(capacity, f"{source}: type {name}")
    return NodeType(name, allocatable_of(capacity, "gke"), zones=(zone,) if zone else (), where=source)


def _of_azure(each: Mapping[str, Any], source: str) -> NodeType:
    able = {one["name"]: one["value"] for one in each.get("capabilities") or ()}
    capacity: dict[str, Any] = {
        "cpu": able["vCPUs"],
        "memory": f"{round(float(able['MemoryGB']) * 1024)}Mi",
        "pods": 110,
    }
    if int(able.get("GPUs", 0) or 0):
        capacity[GPU] = int(able["GPUs"])
    name = str(each["name"])
    check_amounts(capacity, f"{source}: type {name}")
    zones: list[str] = []
    for place in each.get("locationInfo") or ():
        zones += [f"{place.get('location', '')}-{zone}" for zone in place.get("zones") or ()]
    return NodeType(name, capacity, zones=tuple(sorted(zones)), where=source)

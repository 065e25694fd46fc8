"""Says what several plugins' answers depend on of a pod, in a form that can be compared (see `Plugin.sign_pod`).

The parts are those of kube-scheduler's signatures: volumes count without their names, and those of config maps and
secrets do not count at all.
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.msgpack import encode
from msgspec.structs import replace

from podium.kube import Pod
from podium.kube.requests import fit_requests
from podium.placement.devices.uses import DeviceResourceNames


def tolerations_signature(pod: Pod) -> Hashable:
    return encode(sorted(pod.spec.tolerations, key=lambda each: (each.key, each.value)))


def volumes_signature(pod: Pod) -> Hashable:
    counted = (each for each in pod.spec.volumes if each.config_map is None and each.secret is None)
    return tuple(sorted(encode(replace(each, name="")) for each in counted))


def requests_signature(pod: Pod, devices: DeviceResourceNames) -> Hashable | None:
    """None where a device class stands behind a resource: pods that are given devices cannot be compared."""
    requests = fit_requests(pod)
    if any(amount and devices.class_of(name) for name, amount in requests.items()):
        return None
    return frozenset(requests.items())

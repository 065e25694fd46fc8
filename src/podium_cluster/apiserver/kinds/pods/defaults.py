"""Fills in what a pod leaves out, or the template of one: requests from limits, the pull policy from the image tag, and
so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kubecel.quantity import format_nano, parse
from podium_cluster.apiserver.kind import Defaults
from podium_cluster.apiserver.kinds.persistent_volumes import CLAIM_DEFAULTS, VOLUME_DEFAULTS

_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::\d+)?/)?{_COMPONENT}(?:/{_COMPONENT})*(?::(?P<tag>\w[\w.-]{{0,127}}))?(?P<digest>@[\w+.:-]+)?",
    re.ASCII,
)
_FILE_MODE: Final = {"defaultMode": 0o644}


def _pod(pod: dict[str, Any]) -> None:
    spec = pod.setdefault("spec", {})
    for container in _containers(spec):
        resources = container.get("resources") or {}
        limits = resources.get("limits")
        if limits:
            resources["requests"] = limits | resources.get("requests", {})
    if spec.get("resources"):
        _pod_level_resources(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        for container in _containers(spec):
            for port in container.get("ports", ()):
                if port.get("containerPort"):
                    port.setdefault("hostPort", port["containerPort"])


def _pod_spec(spec: dict[str, Any]) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")  # one field under two names
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def _pod_level_resources(spec: dict[str, Any]) -> None:
    """What the containers ask for together counts for the pod where only a part is said for the pod itself.

    Where every container has a limit of a resource, the pod has one, too.
    """
    resources = spec["resources"]
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    if not limits and not requests:
        return
    together = _together(spec, "limits")
    huge = {name: amount for name, amount in together.items() if name.startswith("hugepages-")}
    limits = {name: amount for name, amount in huge.items() if name not in requests} | limits
    summed = {name: amount for name, amount in _together(spec, "requests").items() if name in ("cpu", "memory")}
    supported = {name: amount for name, amount in limits.items() if name in ("cpu", "memory") or "hugepages-" in name}
    requests = supported | summed | requests
    containers = list(_containers(spec))
    for name, amount in requests.items():
        everywhere = all(name in (each.get("resources") or {}).get("limits", {}) for each in containers)
        if name not in limits and name in together and everywhere:
            limits[name] = max(together[name], amount, key=parse)
    if limits:
        resources["limits"] = limits
    resources["requests"] = requests


def _together(spec: dict[str, Any], kind: str) -> dict[str, str]:
    """The most that containers take at a time: init containers run before the others, sidecars throughout."""
    running: dict[str, int] = {}
    starting: dict[str, int] = {}
    binary: dict[str, bool] = {}

    def amounts(container: dict[str, Any]) -> Iterator[tuple[str, int]]:
        for name, amount in container.get("resources", {}).get(kind, {}).items():
            binary.setdefault(name, str(amount).endswith("i"))
            yield name, parse(amount)

    for container in spec.get("initContainers", ()):
        sidecar = container.get("restartPolicy") == "Always"
        for name, amount in amounts(container):
            starting[name] = max(starting.get(name, 0), amount + running.get(name, 0))
            if sidecar:
                running[name] = running.get(name, 0) + amount
    for container in spec.get("containers", ()):
        for name, amount in amounts(container):
            running[name] = running.get(name, 0) + amount
    most = {name: max(running.get(name, 0), starting.get(name, 0)) for name in binary}
    return {name: format_nano(amount, binary=binary[name]) for name, amount in most.items()}


def _containers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from spec.get("containers", ())
    yield from spec.get("initContainers", ())


def _pull_policy(image: str) -> str:
    """Always for what is, or means, the tag `latest`."""
    found = _IMAGE.fullmatch(image)
    if found is None:
        return "IfNotPresent"
    return "Always" if (found["tag"] or ("" if found["digest"] else "latest")) == "latest" else "IfNotPresent"


def _container(container: dict[str, Any]) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))


def _volume(volume: dict[str, Any]) -> None:
    if len(volume) < 2:  # a name and nothing else
        volume["emptyDir"] = {}
    image = volume.get("image")
    if image is not None and "pullPolicy" not in image:
        image["pullPolicy"] = _pull_policy(image.get("reference", ""))


POD_DEFAULTS: Final = (
    Defaults(
        {
            "core.v1.PodSpec": {
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
                "schedulerName": "default-scheduler",
            },
            "core.v1.Container": {
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            },
            "core.v1.EphemeralContainer": {
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            },
            "core.v1.Probe": {
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
            "core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
            "core.v1.SecretVolumeSource": _FILE_MODE,
            "core.v1.ConfigMapVolumeSource": _FILE_MODE,
            "core.v1.DownwardAPIVolumeSource": _FILE_MODE,
            "core.v1.ProjectedVolumeSource": _FILE_MODE,
            "core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
            "core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
        },
        {
            "core.v1.Pod": _pod,
            "core.v1.PodSpec": _pod_spec,
            "core.v1.Container": _container,
            "core.v1.EphemeralContainer": _container,
            "core.v1.Volume": _volume,
        },
    )
    | VOLUME_DEFAULTS  # paths of the host
    | CLAIM_DEFAULTS  # claims that come and go with the pod
)

"""Fills in defaults that depend on other fields: requests from limits, the pull policy from the image tag, and so on.

Each rule takes the value of one type, which has its constants already, and fills in what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from kubecel.quantity import format_nano, parse

Rule = Callable[[dict[str, Any]], None]

_NANO_PER_MILLI: Final = 10**6
_RBAC: Final = "rbac.authorization.k8s.io"


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
    """What the containers ask for together counts for the pod where only a part is said for the pod itself."""
    resources = spec["resources"]
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    if limits or requests:
        huge = {name: amount for name, amount in _together(spec, "limits").items() if name.startswith("hugepages-")}
        limits = {name: amount for name, amount in huge.items() if name not in requests} | limits
        if limits:
            resources["limits"] = limits
    if limits:
        summed = {name: amount for name, amount in _together(spec, "requests").items() if name in ("cpu", "memory")}
        supported = {
            name: amount for name, amount in limits.items() if name in ("cpu", "memory") or "hugepages-" in name
        }
        resources["requests"] = supported | summed | requests


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


_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::\d+)?/)?{_COMPONENT}(?:/{_COMPONENT})*(?::(?P<tag>\w[\w.-]{{0,127}}))?(?P<digest>@[\w+.:-]+)?",
    re.ASCII,
)


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


def _service_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    kind = spec.setdefault("type", "ClusterIP")
    outside = kind in ("NodePort", "LoadBalancer")
    if (outside or (kind == "ClusterIP" and spec.get("externalIPs"))) and "externalTrafficPolicy" not in spec:
        spec["externalTrafficPolicy"] = "Cluster"
    if outside or kind == "ClusterIP":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _service_port(port: dict[str, Any]) -> None:
    if not port.get("targetPort"):
        port["targetPort"] = port.get("port", 0)


def _namespace(namespace: dict[str, Any]) -> None:
    metadata = namespace.get("metadata", {})
    if metadata.get("name"):
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]


def _node_status(status: dict[str, Any]) -> None:
    if "allocatable" not in status and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])


def _limit_range_item(item: dict[str, Any]) -> None:
    if item.get("type") != "Container":
        return
    default = item.get("max", {}) | item.get("default", {})
    request = item.get("min", {}) | default | item.get("defaultRequest", {})
    item |= {name: amounts for name, amounts in (("default", default), ("defaultRequest", request)) if amounts}


def _replication_controller(controller: dict[str, Any]) -> None:
    spec = controller.get("spec", {})
    labels = spec.get("template", {}).get("metadata", {}).get("labels")
    if labels:
        spec.setdefault("selector", dict(labels))
        controller["metadata"].setdefault("labels", dict(labels))


def _deployment_strategy(strategy: dict[str, Any]) -> None:
    _rolling(strategy, maxUnavailable="25%", maxSurge="25%")


def _daemon_set_strategy(strategy: dict[str, Any]) -> None:
    _rolling(strategy, maxUnavailable=1, maxSurge=0)


def _rolling(strategy: dict[str, Any], **defaults: Any) -> None:
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy["rollingUpdate"] = defaults | strategy.get("rollingUpdate", {})


def _stateful_set_strategy(strategy: dict[str, Any]) -> None:
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)


def _job(job: dict[str, Any]) -> None:
    labels = job.get("spec", {}).get("template", {}).get("metadata", {}).get("labels")
    if labels:
        job["metadata"].setdefault("labels", dict(labels))


def _job_spec(spec: dict[str, Any]) -> None:
    if "parallelism" not in spec:
        spec["parallelism"] = 1
        spec.setdefault("completions", 1)
    spec.setdefault("backoffLimit", (1 << 31) - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")


def _device_request(request: dict[str, Any]) -> None:
    if request.get("allocationMode") == "ExactCount":
        request.setdefault("count", 1)


def _role_reference(reference: dict[str, Any]) -> None:
    reference["apiGroup"] = reference.get("apiGroup") or _RBAC


def _subject(subject: dict[str, Any]) -> None:
    if subject.get("kind") in ("User", "Group"):
        subject.setdefault("apiGroup", _RBAC)


def _definition(definition: dict[str, Any]) -> None:
    status = definition.setdefault("status", {})
    if not status.get("storedVersions"):
        stored = _stored_versions(definition.get("spec", {}).get("versions", ()))
        if stored:
            status["storedVersions"] = stored


def _stored_versions(versions: Iterable[dict[str, Any]]) -> list[str]:
    return [version["name"] for version in versions if version.get("storage")][:1]


def _definition_names(names: dict[str, Any]) -> None:
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")


def round_up(amounts: dict[str, Any]) -> None:
    """Amounts of resources have no parts smaller than a thousandth."""
    for name, amount in amounts.items():
        if amount.endswith(("n", "u")):
            amounts[name] = format_nano(-(-parse(amount) // _NANO_PER_MILLI) * _NANO_PER_MILLI)


RULES: Final[dict[str, Rule]] = {
    "core.v1.Pod": _pod,
    "core.v1.PodSpec": _pod_spec,
    "core.v1.Container": _container,
    "core.v1.EphemeralContainer": _container,
    "core.v1.Volume": _volume,
    "core.v1.ServiceSpec": _service_spec,
    "core.v1.ServicePort": _service_port,
    "core.v1.Namespace": _namespace,
    "core.v1.NodeStatus": _node_status,
    "core.v1.LimitRangeItem": _limit_range_item,
    "core.v1.ReplicationController": _replication_controller,
    "apps.v1.DeploymentStrategy": _deployment_strategy,
    "apps.v1.DaemonSetUpdateStrategy": _daemon_set_strategy,
    "apps.v1.StatefulSetUpdateStrategy": _stateful_set_strategy,
    "batch.v1.Job": _job,
    "batch.v1.JobSpec": _job_spec,
    "resource.v1.ExactDeviceRequest": _device_request,
    "resource.v1.DeviceSubRequest": _device_request,
    "rbac.v1.RoleRef": _role_reference,
    "rbac.v1.Subject": _subject,
    "apiextensions.v1.CustomResourceDefinition": _definition,
    "apiextensions.v1.CustomResourceDefinitionNames": _definition_names,
}

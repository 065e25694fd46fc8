"""Names the fields that a field selector may ask for, by kind, and reads their values in an object.

Every kind can be selected by `metadata.name` and `metadata.namespace`; a few have more. The values of these are taken
out once, when an object is stored, so that a watch with a field selector never decodes an object it does not send.
"""

from collections.abc import Callable
from typing import Any, Final

from podium_cluster.apiserver.kinds import Kind

Values = tuple[str, ...]

_EVENT_FIELDS: Final = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_REGARDED: Final = tuple(name.replace("involvedObject", "regarding") for name in _EVENT_FIELDS[:7])

SELECTABLE: Final[dict[str, tuple[str, ...]]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "replicationcontrollers": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "events": _EVENT_FIELDS,
    "resourceslices.resource.k8s.io": ("spec.driver", "spec.nodeName"),
}
"""By the place in the store; values are kept in this order."""


def selectable(kind: Kind) -> tuple[str, ...]:
    """The names of a kind's own fields, as its form of the object spells them."""
    if kind.group == "events.k8s.io":
        return (*_REGARDED, "reason", "reportingController", "source", "type")
    return SELECTABLE.get(kind.stored_in, ())


def values(kind: Kind, obj: dict[str, Any]) -> Values:
    """The values of the fields that `selectable` names, in its order; what is absent reads as empty."""
    read = _READERS.get(kind.stored_in)
    return read(obj) if read else ()


def _pod(obj: dict[str, Any]) -> Values:
    spec = obj.get("spec") or {}
    status = obj.get("status") or {}
    ip = status.get("podIP", "")
    if not ip and (ips := status.get("podIPs")):
        ip = ips[0].get("ip", "")
    return (
        spec.get("nodeName", ""),
        spec.get("restartPolicy", ""),
        spec.get("schedulerName", ""),
        spec.get("serviceAccountName", ""),
        _boolean(spec.get("hostNetwork")),
        status.get("phase", ""),
        ip,
        status.get("nominatedNodeName", ""),
    )


def _event(obj: dict[str, Any]) -> Values:
    about = obj.get("involvedObject") or {}
    source = (obj.get("source") or {}).get("component", "") or obj.get("reportingComponent", "")
    return (
        about.get("kind", ""),
        about.get("namespace", ""),
        about.get("name", ""),
        about.get("uid", ""),
        about.get("apiVersion", ""),
        about.get("resourceVersion", ""),
        about.get("fieldPath", ""),
        obj.get("reason", ""),
        obj.get("reportingComponent", ""),
        source,
        obj.get("type", ""),
    )


def _node(obj: dict[str, Any]) -> Values:
    return (_boolean((obj.get("spec") or {}).get("unschedulable")),)


def _phase(obj: dict[str, Any]) -> Values:
    return ((obj.get("status") or {}).get("phase", ""),)


def _replicas(obj: dict[str, Any]) -> Values:
    return (str((obj.get("status") or {}).get("replicas", 0)),)


def _succeeded(obj: dict[str, Any]) -> Values:
    return (str((obj.get("status") or {}).get("succeeded", 0)),)


def _type(obj: dict[str, Any]) -> Values:
    return (obj.get("type", ""),)


def _service(obj: dict[str, Any]) -> Values:
    spec = obj.get("spec") or {}
    return (spec.get("clusterIP", ""), spec.get("type", ""))


def _slice(obj: dict[str, Any]) -> Values:
    spec = obj.get("spec") or {}
    return (spec.get("driver", ""), spec.get("nodeName", ""))


def _boolean(value: object) -> str:
    return "true" if value else "false"


_READERS: Final[dict[str, Callable[[dict[str, Any]], Values]]] = {
    "pods": _pod,
    "nodes": _node,
    "namespaces": _phase,
    "replicationcontrollers": _replicas,
    "jobs.batch": _succeeded,
    "secrets": _type,
    "services": _service,
    "events": _event,
    "resourceslices.resource.k8s.io": _slice,
}

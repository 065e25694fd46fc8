"""Validates containers of every sort: names, images, ports, environment, mounts, probes, what init containers may not
have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from podium_cluster.apiserver.errors import duplicate, field_forbidden, invalid_value, not_supported, required
from podium_cluster.apiserver.validation.resources import requirements
from podium_cluster.apiserver.validation.volumes import descending, key_reference
from podium_cluster.apiserver.validation.wording import (
    Causes,
    Obj,
    between,
    dns_label,
    dns_subdomain,
    non_negative,
    not_found,
)

Containers = list[dict[str, Any]]
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
SCHEMES: Final = ("HTTP", "HTTPS")
HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_PORT_CHARACTERS: Final = re.compile("[-a-z0-9]+")
_ONLY_FOR_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def containers(path: str, given: Containers, volumes: Mapping[str, Obj], claims: Collection[str]) -> Causes:
    if not given:
        yield required(path)
        return
    names: set[str] = set()
    for at, container in enumerate(given):
        field, name = f"{path}[{at}]", container.get("name", "")
        yield from _common(field, container, volumes, claims)
        if name in names:
            yield duplicate(f"{field}.name", name)
        names.add(name)
        if "lifecycle" in container:
            yield from _lifecycle(f"{field}.lifecycle", container["lifecycle"])
        for probe in PROBES:
            if probe in container:
                yield from _probe(f"{field}.{probe}", container[probe], probe)
        policy = container.get("restartPolicy")
        if policy is not None and policy not in RESTART_POLICIES:
            yield not_supported(f"{field}.restartPolicy", policy, RESTART_POLICIES)
    yield from _host_ports(path, given)


def init_containers(
    path: str, given: Containers, regular: Containers, volumes: Mapping[str, Obj], claims: Collection[str]
) -> Causes:
    names = {container.get("name", "") for container in regular}
    for at, container in enumerate(given):
        field, name = f"{path}[{at}]", container.get("name", "")
        yield from _common(field, container, volumes, claims)
        policy = container.get("restartPolicy")
        if policy is not None and policy not in RESTART_POLICIES:
            yield not_supported(f"{field}.restartPolicy", policy, RESTART_POLICIES)
        if name in names:
            yield duplicate(f"{field}.name", name)
        elif name:
            names.add(name)
        yield from _host_ports(path, [container])
        if policy == "Always":
            if "lifecycle" in container:
                yield from _lifecycle(f"{field}.lifecycle", container["lifecycle"])
            for probe in PROBES:
                if probe in container:
                    yield from _probe(f"{field}.{probe}", container[probe], probe)
        else:
            for forbidden in ("lifecycle", *PROBES):
                if forbidden in container:
                    yield field_forbidden(f"{field}.{forbidden}", _ONLY_FOR_SIDECARS)


def images_without_spaces(path: str, given: Containers) -> Causes:
    """Checked for pods, not for templates."""
    for at, container in enumerate(given):
        image = container.get("image", "")
        if image != image.strip():
            yield invalid_value(f"{path}[{at}].image", image, "must not have leading or trailing whitespace")


def _common(path: str, container: Obj, volumes: Mapping[str, Obj], claims: Collection[str]) -> Causes:
    name = container.get("name", "")
    if name:
        yield from dns_label(f"{path}.name", name)
    else:
        yield required(f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    policy = container.get("terminationMessagePolicy", "File")
    if policy not in MESSAGE_POLICIES:
        yield not_supported(f"{path}.terminationMessagePolicy", policy, MESSAGE_POLICIES)
    if "ports" in container:
        yield from _ports(f"{path}.ports", container["ports"])
    if "env" in container:
        yield from _environment(f"{path}.env", container["env"])
    if "envFrom" in container:
        yield from _environment_sources(f"{path}.envFrom", container["envFrom"])
    if "volumeMounts" in container:
        yield from _mounts(f"{path}.volumeMounts", container, volumes)
    if "volumeDevices" in container:
        yield from _devices(f"{path}.volumeDevices", container, volumes)
    policy = container.get("imagePullPolicy", "Always")
    if policy not in PULL_POLICIES:
        yield not_supported(f"{path}.imagePullPolicy", policy, PULL_POLICIES)
    if container.get("resources"):
        yield from requirements(f"{path}.resources", container["resources"], claims)


def _ports(path: str, ports: list[dict[str, Any]]) -> Causes:
    names: set[str] = set()
    for at, port in enumerate(ports):
        field, name, number = f"{path}[{at}]", port.get("name", ""), port.get("containerPort", 0)
        if name:
            complaints = port_name_errors(name)
            for complaint in complaints:
                yield invalid_value(f"{field}.name", name, complaint)
            if not complaints and name in names:
                yield duplicate(f"{field}.name", name)
            names.add(name)
        if number == 0:
            yield required(f"{field}.containerPort")
        elif not 1 <= number <= 65535:
            yield invalid_value(f"{field}.containerPort", number, between(1, 65535))
        host = port.get("hostPort", 0)
        if host and not 1 <= host <= 65535:
            yield invalid_value(f"{field}.hostPort", host, between(1, 65535))
        protocol = port.get("protocol", "")
        if not protocol:
            yield required(f"{field}.protocol")
        elif protocol not in PROTOCOLS:
            yield not_supported(f"{field}.protocol", protocol, PROTOCOLS)


def port_name_errors(name: str) -> list[str]:
    found = []
    if len(name.encode()) > 15:
        found.append("must be no more than 15 characters")
    if not _PORT_CHARACTERS.fullmatch(name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def _host_ports(path: str, given: Containers) -> Causes:
    taken: set[str] = set()
    for at, container in enumerate(given):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            what = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if what in taken:
                yield duplicate(f"{path}[{at}].ports[{number}].hostPort", what)
            taken.add(what)


def _environment(path: str, variables: list[dict[str, Any]]) -> Causes:
    for at, variable in enumerate(variables):
        field, name = f"{path}[{at}]", variable.get("name", "")
        if name:
            yield from _environment_name(f"{field}.name", name)
        else:
            yield required(f"{field}.name")
        if "valueFrom" in variable:
            yield from _value_from(f"{field}.valueFrom", variable)


def _environment_name(field: str, name: str) -> Causes:
    if any(not " " <= character <= "~" or character == "=" for character in name):
        detail = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield invalid_value(field, name, detail)


def _value_from(field: str, variable: Obj) -> Causes:
    origin = variable["valueFrom"]
    given = [source for source in _SOURCES if source in origin]
    for source in ("configMapKeyRef", "secretKeyRef"):
        if source in origin:
            yield from key_reference(f"{field}.{source}", origin[source])
    if not given:
        words = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid_value(field, "", f"must specify one of: {words}")
    elif variable.get("value"):
        yield invalid_value(field, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid_value(field, "", "may not have more than one field specified at a time")


def _environment_sources(path: str, sources: list[dict[str, Any]]) -> Causes:
    for at, source in enumerate(sources):
        field = f"{path}[{at}]"
        if source.get("prefix"):
            yield from _environment_name(f"{field}.prefix", source["prefix"])
        given = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in given:
            named = source[name].get("name", "")
            if named:
                yield from dns_subdomain(f"{field}.{name}.name", named)
            else:
                yield required(f"{field}.{name}.name")
        if not given:
            yield invalid_value(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield invalid_value(path, "", "may not have more than one field specified at a time")


def _mounts(path: str, container: Obj, volumes: Mapping[str, Obj]) -> Causes:
    devices = container.get("volumeDevices") or ()
    device_names = {device.get("name", "") for device in devices}
    device_paths = {device.get("devicePath", "") for device in devices}
    points: set[str] = set()
    for at, mount in enumerate(container["volumeMounts"]):
        field, name, point = f"{path}[{at}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{field}.name")
        if name not in volumes:
            yield not_found(f"{field}.name", name)
        if not point:
            yield required(f"{field}.mountPath")
        if point in points:
            yield invalid_value(f"{field}.mountPath", point, "must be unique")
        points.add(point)
        if name in device_names:
            yield invalid_value(f"{field}.name", name, "must not already exist in volumeDevices")
        if point in device_paths:
            yield invalid_value(f"{field}.mountPath", point, "must not already exist as a path in volumeDevices")
        if mount.get("subPath"):
            yield from descending(f"{path}.subPath", mount["subPath"])
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                detail = "subPathExpr and subPath are mutually exclusive"
                yield invalid_value(f"{field}.subPathExpr", mount["subPathExpr"], detail)
            yield from descending(f"{path}.subPathExpr", mount["subPathExpr"])


def _devices(path: str, container: Obj, volumes: Mapping[str, Obj]) -> Causes:
    names: set[str] = set()
    paths: set[str] = set()
    for at, device in enumerate(container["volumeDevices"]):
        field, name, device_path = f"{path}[{at}]", device.get("name", ""), device.get("devicePath", "")
        volume = volumes.get(name)
        if not name:
            yield required(f"{field}.name")
        if name in names:
            yield invalid_value(f"{field}.name", name, "must be unique")
        if volume is None:
            yield not_found(f"{field}.name", name)
        elif not {"persistentVolumeClaim", "ephemeral"} & volume.keys():
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid_value(f"{field}.name", name, detail)
        if not device_path:
            yield required(f"{field}.devicePath")
        if device_path in paths:
            yield invalid_value(f"{field}.devicePath", device_path, "must be unique")
        if ".." in device_path.split("/"):
            yield invalid_value(f"{field}.devicePath", device_path, "can not contain backsteps ('..')")
        names.add(name)
        paths.add(device_path)


def _lifecycle(path: str, lifecycle: Obj) -> Causes:
    for hook in ("postStart", "preStop"):
        if hook in lifecycle:
            yield from _handler(f"{path}.{hook}", lifecycle[hook])


def _probe(path: str, probe: Obj, which: str) -> Causes:
    yield from _handler(path, probe)
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        yield from non_negative(f"{path}.{name}", probe.get(name, 0))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield invalid_value(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if which != "readinessProbe" and probe.get("successThreshold", 1) != 1:
        yield invalid_value(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler(path: str, handler: Obj) -> Causes:
    given = [name for name in HANDLERS if name in handler]
    if not given:
        yield required(path, "must specify a handler type")
    if not given:
        return
    first, action = f"{path}.{given[0]}", handler[given[0]]
    match given[0]:
        case "exec":
            if not action.get("command"):
                yield required(f"{first}.command")
        case "httpGet":
            if not action.get("path"):
                yield required(f"{first}.path")
            yield from _port(f"{first}.port", action.get("port", 0))
            if action.get("scheme") not in SCHEMES:
                yield not_supported(f"{first}.scheme", action.get("scheme", ""), SCHEMES)
        case "tcpSocket" | "grpc":
            yield from _port(f"{first}.port", action.get("port", 0))
    for name in given[1:]:
        yield field_forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _port(field: str, port: int | str) -> Causes:
    """A number, or the name of one of the container's ports."""
    if isinstance(port, str):
        for complaint in port_name_errors(port):
            yield invalid_value(field, port, complaint)
    elif not 1 <= port <= 65535:
        yield invalid_value(field, port, between(1, 65535))

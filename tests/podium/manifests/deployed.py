"""Runs what manifests deploy without a kubelet: the commands of a Deployment's containers, as its service account.

Objects are applied to a real API server and read back from it. Each container becomes a process with a token of the
service account, the files of its ConfigMap and its environment; only addresses differ from those in a pod.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.testbed import Component, ControlPlane
from tools.testbed.apiclient import Object
from tools.testbed.audit import accesses
from tools.testbed.podium import podium_environment
from tools.testbed.ports import LOOPBACK, free_port

CONFIG_FOLDER = "/etc/podium"


def apply(plane: ControlPlane, objects: Iterable[Object]) -> None:
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(list(objects)))


def account(name: str, namespace: str = "kube-system") -> str:
    """The user behind a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def kubeconfig_of(
    plane: ControlPlane, name: str, folder: Path, namespace: str = "kube-system", server: str | None = None
) -> Path:
    """With a token that the API server made for the service account."""
    token = plane.kubectl("create", "token", name, "-n", namespace, "--duration=1h").strip()
    return plane.write_kubeconfig(folder / f"{name}.kubeconfig", token=token, server=server)


class Replica:
    """One pod of a Deployment: its containers as processes, by their names."""

    def __init__(
        self,
        plane: ControlPlane,
        name: str,
        folder: Path,
        *,
        namespace: str = "kube-system",
        server: str | None = None,
        ready: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        deployment = plane.client.get("apps/v1/Deployment", name, namespace)
        self.pod: Object = deployment["spec"]["template"]["spec"]
        self.urls: dict[str, str] = {}
        self._plane, self._name, self._ready, self._variables = plane, name, ready, variables or {}
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.kubeconfig = kubeconfig_of(plane, self.pod["serviceAccountName"], folder, namespace, server)
        for volume in self.pod["volumes"]:
            if "configMap" in volume:
                data = plane.client.get("v1/ConfigMap", volume["configMap"]["name"], namespace)["data"]
                for file, text in data.items():
                    (folder / file).write_text(text)

    def start(self, container_name: str) -> Component:
        """Podium's process of a container, once its log says that it works."""
        (container,) = (each for each in self.pod["containers"] if each["name"] == container_name)
        arguments = [each.replace(CONFIG_FOLDER, str(self.folder)) for each in container["args"]]
        command, environment = arguments[0], dict(podium_environment())
        arguments += ["--kubeconfig", str(self.kubeconfig)]
        environment |= {each["name"]: each["value"] for each in container.get("env", ())} | dict(self._variables)
        port = free_port()
        if command in ("run", "controller"):
            arguments += ["--bind-address", LOOPBACK, f"--secure-port={port}"]
            self.urls[container_name] = f"https://{LOOPBACK}:{port}"
        if command == "extender":
            arguments[arguments.index("--bind-address") + 1] = LOOPBACK
            environment["HTTP_PORT"] = str(port)
            self.urls[container_name] = f"http://{LOOPBACK}:{port}"
        return self._plane.start_program(
            f"{self._name}-{container_name}",
            [sys.executable, "-m", "podium", *arguments],
            url=self.urls.get(container_name, ""),
            ready=self._ready,
            environment=environment,
        )


Right = tuple[str, str, str]


def granted(objects: Iterable[Mapping[str, Any]]) -> set[Right]:
    """Group, resource and verb of every rule in the roles among the objects."""
    return {
        (group, resource, verb)
        for each in objects
        if each["kind"] in ("ClusterRole", "Role")
        for rule in each["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(plane: ControlPlane, name: str, namespace: str = "kube-system") -> set[Right]:
    """What the service account was allowed to do, by the audit log."""
    found = accesses(plane.audit_log, account(name, namespace))
    return {(each.group, each.resource, each.verb) for each in found if each.status != 403}


def refused(plane: ControlPlane, name: str, namespace: str = "kube-system") -> set[Right]:
    """What it was not allowed to do."""
    found = accesses(plane.audit_log, account(name, namespace))
    return {(each.group, each.resource, each.verb) for each in found if each.status == 403}

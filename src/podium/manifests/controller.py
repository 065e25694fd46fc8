"""Lists the Kubernetes objects that run `podium controller` in a cluster, with the least rights it can do with.

The ClusterRole follows from what the enabled controllers declare: a controller that is not enabled adds nothing to it.
Beside it stand events, the lease (in a Role of its own) and what serving /metrics takes: reviews of who asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from podium.controllers.assembly import NAME, PORT, ControllerOptions
from podium.controllers.controller import Controller
from podium.kube.json_object import JsonObject
from podium.manifests.objects import container, deployment, disruption_budget, probes, service, service_monitor
from podium.manifests.rights import Rights


def controller_rights(controllers: Iterable[Controller]) -> Rights:
    """What the controllers read and write."""
    found = Rights()
    for controller in controllers:
        for resource in (controller.resource, *(each.resource for each in controller.related)):
            found.allow(resource.group, resource.plural, "list", "watch")
        for name in controller.written:
            found.allow(controller.resource.group, name, "patch")
        if controller.fetched is not None:
            fetched = controller.fetched.resource
            found.allow(fetched.group, fetched.plural, "get")
    return found


def process_rights(controllers: Iterable[Controller], namespace: str) -> Rights:
    """What the controllers do, and what the process around them does."""
    found = controller_rights(controllers)
    found.record_events()
    found.serve_metrics()
    found.lead(msgspec.structs.replace(ControllerOptions().election, resource_namespace=namespace))
    return found


def manifest(
    controllers: Sequence[Controller], namespace: str, image: str, *, monitored: bool = False
) -> list[JsonObject]:
    """Every object, in the order in which they are to be applied."""
    names = [each.name for each in controllers]
    return [
        *process_rights(controllers, namespace).objects(NAME, namespace),
        deployment(NAME, namespace, [_container(names, namespace, image)]),
        disruption_budget(NAME, namespace),
        service(NAME, namespace, PORT),
        *([service_monitor(NAME, namespace)] if monitored else []),
    ]


def _container(names: Sequence[str], namespace: str, image: str) -> JsonObject:
    options = ["--controllers", ",".join(names), "--leader-elect-resource-namespace", namespace]
    given = {
        "args": ["controller", *options, "--log-format", "json"],
        "ports": [{"name": "https", "containerPort": PORT}],
        **probes(PORT, "/healthz", "/readyz", scheme="HTTPS"),
    }
    return container("controller", image, "controller", given)

"""Asks a live cluster for all that an explanation needs."""

import asyncio
from typing import TYPE_CHECKING, NamedTuple, cast

from podium.cli.console import echo
from podium.cli.errors import InputError

if TYPE_CHECKING:
    from podium.client import Access
    from podium.config import Registry, SchedulerConfig
    from podium.framework import Plugin
    from podium.kube import KubeObject
    from podium.telemetry import Telemetry

HOW_TO_DUMP = "kubectl get nodes,pods -A -o json > cluster.json"


class LiveCluster(NamedTuple):
    """The objects that scheduling reads, the load that plugins measure, and what holds the pod at Permit."""

    objects: "list[KubeObject]"
    load: "Telemetry"
    held: str | None


def cluster_access(kubeconfig: str | None, context: str | None) -> "Access":
    """How the cluster is reached."""
    from podium.client import AccessError, load_access

    try:
        return load_access(kubeconfig, context=context)
    except AccessError as error:
        raise InputError(f"{error}; or ask about a dump: --from cluster.json, made with {HOW_TO_DUMP}") from None


def ask_cluster(access: "Access", config: "SchedulerConfig", registry: "Registry", pod_key: str | None) -> LiveCluster:
    """Raises ClientError where the API server cannot be asked; what it withholds is printed and left out."""
    found = asyncio.run(_ask(access, config, registry, pod_key))
    for series, problem in found.load.problems.items():
        _warn(f"judged without {series.query}: {problem}")
    return found


async def _ask(access: "Access", config: "SchedulerConfig", registry: "Registry", pod_key: str | None) -> LiveCluster:
    from podium.client import Client
    from podium.kube import Node, Pod
    from podium.live.measure_once import measure
    from podium.live.permit_events import permit_wait
    from podium.live.snapshot import fetch_custom_objects, fetch_objects

    async with Client(access) as client:
        objects = await fetch_objects(client, _warn, config.gates)
        enabled = {name for profile in config.profiles for names in profile.plugins.values() for name in names}
        plugins = [cast("type[Plugin]", registry[name]) for name in sorted(enabled)]
        objects += await fetch_custom_objects(client, plugins, _warn)
        nodes = [each for each in objects if isinstance(each, Node)]
        pod = next((each for each in objects if isinstance(each, Pod) and each.key == pod_key), None)
        held = None if pod is None else await permit_wait(client, pod)
        return LiveCluster(objects, await measure(config, registry, nodes, client), held)


def _warn(sentence: str) -> None:
    echo(sentence, err=True)

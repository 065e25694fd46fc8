"""Asks a live cluster for all that an explanation needs."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from podium.cli.errors import InputError

if TYPE_CHECKING:
    from podium.client import Access
    from podium.config import Registry, SchedulerConfig
    from podium.framework import Plugin
    from podium.kube import KubeObject, Pod
    from podium.load.sources import Telemetry
    from podium.run.snapshot import PodEvent

HOW_TO_DUMP = "kubectl get nodes,pods -A -o json > cluster.json"


class LiveCluster(NamedTuple):
    """The objects that scheduling reads, the load that plugins measure, and what was said last of the pod."""

    objects: "list[KubeObject]"
    load: "Telemetry"
    last: "PodEvent | None"


Choose = Callable[[Sequence["KubeObject"]], "Pod | None"]
"""Finds the pod whose events count; None where none do."""


def cluster_access(kubeconfig: str | None, context: str | None) -> "Access":
    """How the cluster is reached."""
    from podium.client import AccessError, load_access

    try:
        return load_access(kubeconfig, context=context)
    except AccessError as error:
        raise InputError(f"{error}; or ask about a dump: --from cluster.json, made with {HOW_TO_DUMP}") from None


def scheduler_access(kubeconfig: str | None, context: str | None, url: str) -> "Access":
    """How a scheduler's own port is reached: as the user of the kubeconfig. On this machine any certificate will do, as
    of a forwarded port; elsewhere it has to be one that the cluster's authority signed, before a token is sent."""
    from yarl import URL

    from podium.client import AccessError, load_access
    from podium.serving.browser_guard import is_loopback

    try:
        host = URL(url).host or ""
        return load_access(
            kubeconfig, context=context, master=url, any_certificate=host == "localhost" or is_loopback(host)
        )
    except (AccessError, ValueError) as error:
        raise InputError(f"--scheduler {url}: {error}") from None


def ask_cluster(
    access: "Access",
    config: "SchedulerConfig",
    registry: "Registry",
    choose: Choose,
    tell: Callable[[str], None],
    others: Sequence[str] = (),
) -> LiveCluster:
    """Raises ClientError where the API server cannot be asked; `tell` hears what it withholds.

    `others` are resources that are fetched beside those that scheduling reads.
    """
    found = asyncio.run(_ask(access, config, registry, choose, tell, others))
    for series, problem in found.load.problems.items():
        tell(f"judged without {series.query}: {problem}")
    return found


async def _ask(
    access: "Access",
    config: "SchedulerConfig",
    registry: "Registry",
    choose: Choose,
    tell: Callable[[str], None],
    others: Sequence[str],
) -> LiveCluster:
    from podium.client import Client
    from podium.kube import Node
    from podium.run.snapshot import fetch_custom_objects, fetch_objects, last_event, measure

    async with Client(access) as client:
        objects = await fetch_objects(client, tell, config.gates)
        enabled = {name for profile in config.profiles for names in profile.plugins.values() for name in names}
        plugins = [cast("type[Plugin]", registry[name]) for name in sorted(enabled)]
        objects += await fetch_custom_objects(client, plugins, tell, others)
        nodes = [each for each in objects if isinstance(each, Node)]
        pod = choose(objects)
        last = None if pod is None else await last_event(client, pod)
        return LiveCluster(objects, await measure(config, registry, nodes, client), last)

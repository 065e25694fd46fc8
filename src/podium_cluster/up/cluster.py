"""Runs a cluster in one process: the API, the controllers, the nodes, the scheduler, a workload.

The scheduler is the very process that `podium run` starts, and it reaches the API over HTTP on the loopback, as any
scheduler would; so do the controllers of custom resources, which `podium controller` runs. The built-in controllers and
the nodes work on the API directly. They share an event loop, and the scheduler has its own in a thread, so that a
plugin that blocks does not stop the API. The order is that of a cluster coming up: first the API, then nodes and
controllers, then the workload, then the scheduler. They stop in the reverse order.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from podium.client import Access
from podium.config.feature_gates import Gate
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.config.types import LeaderElection
from podium.controllers.assembly import ControllerOptions, build_controllers
from podium.framework.clock import SystemClock
from podium.run.assembly import RunOptions, build_process
from podium.serving.endpoints import ServingOptions
from podium.serving.environment import stop_on_signals
from podium.serving.plugin_pages import PageAddress
from podium.serving.process_loop import first_ended
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.http.server import ApiServer, PortInUseError
from podium_cluster.apiserver.kinds import NODE, POD, WORKLOAD_KINDS
from podium_cluster.apiserver.store.database import Database, DatabaseError
from podium_cluster.apiserver.write_context import timestamp
from podium_cluster.controllers import Controllers
from podium_cluster.kubelets import DeviceShape, Kubelets
from podium_cluster.up import UpError
from podium_cluster.up.background import log_of, say_ready
from podium_cluster.up.creation import CreatedObjects, create, demonstrate, install_definitions
from podium_cluster.up.live_view.nodes import describe_node
from podium_cluster.up.manifests import SAMPLE_NODES, Manifest, sample_shapes, sample_workload
from podium_cluster.up.picture import Picture, ServedAt, take_picture
from podium_cluster.up.pod_tracker import PodTracker
from podium_cluster.up.reload import Sources, take_in_changes, try_out
from podium_cluster.up.running_clusters import RunningCluster, registered, write_kubeconfig
from podium_cluster.up.scheduler_pages import pages_of, serve_dashboard_of
from podium_cluster.up.scheduler_thread import BuildScheduler, SchedulerThread
from podium_cluster.up.screen import Camera, Screen, counted

HOST: Final = "127.0.0.1"
_LOOK: Final = 0.05
ALONE: Final = ControllerOptions(election=LeaderElection(leader_elect=False))
"""The controllers of custom resources have no other replica here."""


class UpOptions(NamedTuple):
    """What the command line asks for."""

    nodes: int | None = None
    """None: those of the sample, unless the file of `data` has a cluster; then those that are there."""
    workload: list[Manifest] | None = None
    """None: the sample, unless the file of `data` has a cluster."""
    devices: Sequence[DeviceShape] = ()
    speed: float = 1.0
    port: int = 7070
    data: Path | None = None
    pages: Mapping[str, PageAddress] = MappingProxyType({})
    """Where pages of plugins are served, by their name."""
    demo: bool = False
    stays: bool = True
    """Whether a demonstration goes on after it has shown what there is to show."""
    sources: Sources | None = None
    """The files whose changes are taken in."""
    ready_fd: int | None = None
    """Of one in the background: where to say that it stands."""
    explain: Callable[[str, str, SchedulerConfig, Registry], bytes] | None = None
    """Explains a pod, or all that wait, with the kubeconfig; in a thread."""
    dashboard: bool = True


async def up(config: SchedulerConfig, registry: Registry, options: UpOptions, screen: Screen) -> int:
    """Build every part in the order of a cluster coming up, and run them until a signal says stop: then 0."""
    try_out(config, registry)
    stop = stop_on_signals()
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        database = _open_database(options.data, stack)
        goes_on = database is not None and database.revision > 0
        api = EmbeddedApi(
            clock=SystemClock(),
            rng=random.Random(),
            database=database,
            gated_kinds=WORKLOAD_KINDS if Gate.GENERIC_WORKLOAD in config.gates else (),
        )
        server = await _serve(api, options.port, stack)
        tracker = PodTracker(api.store, time.monotonic, screen.show_decision)
        kubelets = await stack.enter_async_context(Kubelets(api, api.clock, api.context.rng, speed=options.speed))
        await stack.enter_async_context(Controllers(api, api.clock, heartbeats=kubelets))
        if options.nodes is not None or not goes_on:
            kubelets.add_nodes(sample_shapes(SAMPLE_NODES if options.nodes is None else options.nodes))
        devices = _add_devices(kubelets, options.devices)
        install_definitions(api)
        restored = api.store.count(POD)
        workload = options.workload
        if workload is None:
            workload = [] if goes_on else sample_workload(devices=bool(options.devices))
        created = create(api, workload)
        kubeconfig = write_kubeconfig(server.url, server.port)
        stack.callback(kubeconfig.unlink, missing_ok=True)
        since = timestamp(api.clock.now())
        log = "" if options.ready_fd is None else log_of(kubeconfig, server.port)
        cluster = RunningCluster(server.port, os.getpid(), since, server.url, str(kubeconfig), log)
        stack.enter_context(registered(cluster))
        run_options = RunOptions(
            user_agent="podium-up",
            serving=ServingOptions(secure_port=0),
            server_in_process=True,
            pages=options.pages,
            remembers=options.dashboard,
        )

        def build_from(config: SchedulerConfig, registry: Registry) -> BuildScheduler:
            return lambda connections: build_process(config, registry, Access(server.url), run_options, connections)

        scheduler = SchedulerThread(build_from(config, registry), run_options)
        page = (
            await serve_dashboard_of(scheduler, lambda: registry, server, kubeconfig, stack)
            if options.dashboard
            else ""
        )
        welcome = _welcome(server.url, kubeconfig, api, created, devices, restored, page)
        screen.say(welcome)
        explain = options.explain

        def explain_pods(pod: str) -> bytes:
            assert explain is not None
            return explain(pod, str(kubeconfig), config, registry)

        server.pages.update(pages_of(scheduler, explain_pods if explain else None))

        async def show_demonstration() -> None:
            await demonstrate(api, tracker, screen, kubeconfig)
            if not options.stays:
                stop.set()

        async def picture() -> Picture:
            service = ServedAt(server.url, str(kubeconfig), time.monotonic() - started)
            return take_picture(await scheduler.engine_picture(), tracker, api, service)

        def replace(new_config: SchedulerConfig, new_registry: Registry) -> None:
            nonlocal config, registry
            config, registry = new_config, new_registry
            scheduler.replace(build_from(config, registry))

        camera = Camera(picture, scheduler.held, lambda name: describe_node(api, name), lambda: (config, registry))
        controllers = build_controllers(Access(server.url), ALONE, stack)
        others: list[Coroutine[Any, Any, Any]] = [
            _show(screen, camera, stop),
            _say_first_placed(tracker, screen),
            controllers.run(asyncio.Event()),
        ]
        if options.ready_fd is not None:
            others.append(_say_ready(scheduler, options.ready_fd, cluster, welcome))
        if options.demo:
            others.append(show_demonstration())
        if options.sources is not None:
            others.append(take_in_changes(options.sources, replace, screen.say))
        return await _run(scheduler, others, stop)


async def _run(scheduler: SchedulerThread, others: list[Coroutine[Any, Any, Any]], stop: asyncio.Event) -> int:
    """The scheduler until it ends; meanwhile, all others."""
    tasks = [asyncio.create_task(each) for each in others]
    try:
        return await scheduler.run(stop)
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


async def _show(screen: Screen, camera: Camera, stop: asyncio.Event) -> None:
    """Show the cluster until it stops; it stops when the user of the screen ends that."""
    showing, stopping = asyncio.create_task(screen.run(camera)), asyncio.create_task(stop.wait())
    try:
        await first_ended((showing, stopping))
    finally:
        stop.set()
        showing.cancel()
        await asyncio.gather(showing, stopping, return_exceptions=True)


def _open_database(path: Path | None, stack: AsyncExitStack) -> Database | None:
    if path is None:
        return None
    try:
        database = Database(path)
    except DatabaseError as error:
        raise UpError(f"--data {error}") from None
    stack.callback(database.close)
    return database


async def _serve(api: EmbeddedApi, port: int, stack: AsyncExitStack) -> ApiServer:
    server = ApiServer(api, host=HOST, port=port)
    try:
        await server.start()
    except PortInUseError as error:
        raise UpError(f"{error}; give another port with --port, or --port 0 for any that is free") from None
    stack.push_async_callback(server.stop)
    return server


def _add_devices(kubelets: Kubelets, shapes: Sequence[DeviceShape]) -> int:
    try:
        return kubelets.add_devices(shapes) if shapes else 0
    except StatusError as error:
        raise UpError(f"--devices: {error.message}") from None


def _welcome(
    url: str, kubeconfig: Path, api: EmbeddedApi, created: CreatedObjects, devices: int, restored: int, page: str
) -> str:
    nodes = counted(api.store.count(NODE), "node") + (f" with {counted(devices, 'device')}" if devices else "")
    before = f", {counted(restored, 'pod')} from before" if restored else ""
    inert = ", ".join(counted(number, kind) for kind, number in created.inert.items())
    return "\n".join(
        (
            f"{nodes} on {url}, {counted(created.objects, 'object')} created{before}",
            *([f"stored, but nothing here acts on them: {inert}"] if inert else []),
            f"export KUBECONFIG={kubeconfig}",
            "kubectl get pods -A -o wide",
            *([f"dashboard: {page}"] if page else []),
        )
    )


async def _say_ready(scheduler: SchedulerThread, descriptor: int, cluster: RunningCluster, welcome: str) -> None:
    await asyncio.wrap_future(scheduler.stands)
    say_ready(descriptor, cluster, welcome)


async def _say_first_placed(tracker: PodTracker, screen: Screen) -> None:
    """Say how long the first pod waited for a node, counted from the start of the process."""
    while tracker.first_placed is None:  # noqa: ASYNC110  the scheduler has no time for a notice
        await asyncio.sleep(_LOOK)
    waited = process_age() - (time.monotonic() - tracker.first_placed)
    screen.say(f"first pod placed {waited:.1f} s after the start")


def process_age() -> float:
    """Seconds since this process began."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError):
        return time.process_time()

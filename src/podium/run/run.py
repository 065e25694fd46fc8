"""Runs `podium run`: builds the process, serves its endpoints, and schedules until it is stopped."""

from __future__ import annotations

from contextlib import AsyncExitStack

from podium.client import Access
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.run.assembly import RunOptions, build_process, serve_endpoints, serve_plugin_pages
from podium.run.memory_dump import dump_on_signal
from podium.serving.environment import stop_on_signals


async def run(config: SchedulerConfig, registry: Registry, access: Access, options: RunOptions) -> int:
    """Run until a signal stops the process (0) or until the lease is lost (1)."""
    stop = stop_on_signals()
    async with AsyncExitStack() as stack:
        process = build_process(config, registry, access, options, stack)
        dump_on_signal(process.live)
        if options.serving.secure_port:
            await serve_endpoints(process, options.serving, access, stack)
        await serve_plugin_pages(process, options, stack)
        return await process.run(stop)

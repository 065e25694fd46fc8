"""Makes event loops: of uvloop where there is one, because requests take less time on it."""

import asyncio
from contextlib import suppress


def new_event_loop() -> asyncio.AbstractEventLoop:
    with suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()

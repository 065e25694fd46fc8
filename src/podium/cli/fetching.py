"""Fetches a page for a command, within bounds of time and size; whatever goes wrong is one sentence."""

import os

import aiohttp


class FetchError(Exception):
    """There was no whole answer: why."""


async def fetched(url: str, accept: str, *, seconds: float, most: int) -> bytes:
    """The body of the answer to a GET; `seconds` and `most` bytes are for all of it."""
    timeout = aiohttp.ClientTimeout(total=seconds)
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, auto_decompress=False, trust_env=True) as session,
            session.get(url, headers=headers, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise FetchError(f"HTTP status {answer.status}")
            parts: list[bytes] = []
            size = 0
            async for part in answer.content.iter_any():
                size += len(part)
                if size > most:
                    raise FetchError(f"the answer is larger than {most} bytes")
                parts.append(part)
            return b"".join(parts)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise FetchError(_sentence(error, seconds)) from None


def _sentence(error: Exception, seconds: float) -> str:
    match error:
        case TimeoutError():
            return f"no whole answer came within {seconds:g} s"
        case aiohttp.ClientConnectorError() if error.os_error.errno and error.os_error.errno > 0:
            return os.strerror(error.os_error.errno)
        case aiohttp.ClientConnectorError():
            return str(error.os_error.strerror or error.os_error)
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return "the connection was closed before the whole answer came"
    return f"it cannot be read ({type(error).__name__})"

"""Gets credentials from a command, as `exec` in a kubeconfig asks for: cloud providers' log-ins come this way.

The command gets an ExecCredential in $KUBERNETES_EXEC_INFO and prints one with a status: a token, a client certificate
with its key, or both, and perhaps when they end. Until then, or until the server answers 401, what it printed is used;
it runs again when asked after that, and never twice at a time (`Access` sees to it).
"""

import asyncio
import base64
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from podium.client.api_errors import AccessError
from podium.client.credentials import Identity, bearer
from podium.framework.clock import Clock, SystemClock
from podium.kube.bounds import UNDECODABLE
from podium.kube.printable import printable

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
EXTENSION = f"{GROUP}/exec"
"""The name of a cluster's extension whose content is handed to the command."""
INFO = "KUBERNETES_EXEC_INFO"
NEVER, IF_AVAILABLE, ALWAYS = "Never", "IfAvailable", "Always"
TIMEOUT = 60.0
MAX_OUTPUT = 1 << 20
RENEW_EVERY = 1.0
"""Seconds between runs for a server that refuses whatever is shown."""
EARLY = 10.0
"""Seconds before its end at which a credential is renewed, so that no request carries one that ends on the way."""


class ExecCredentialStatus(msgspec.Struct, rename="camel"):
    """The part of an ExecCredential that proves something."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class PrintedCredential(msgspec.Struct, rename="camel"):
    """The ExecCredential that a command prints."""

    api_version: str = ""
    kind: str = ""
    status: ExecCredentialStatus | None = None


class ExecCommand(NamedTuple):
    """What a kubeconfig says of the command of a user."""

    command: str
    arguments: Sequence[str] = ()
    api_version: str = VERSIONS[0]
    environment: Mapping[str, str] | None = None
    interactive_mode: str = IF_AVAILABLE
    install_hint: str = ""


class ExecCredentials:
    """The credentials of one user.

    `origin` names the kubeconfig and user in messages; `cluster` is handed to the command where it asks for it.
    """

    changing = True

    @property
    def awaited(self) -> str:
        return f"{self._origin}: the command {self._config.command} has not ended yet"

    def __init__(
        self,
        config: ExecCommand,
        *,
        origin: str,
        cluster: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._config = config
        self._origin = origin
        self._cluster = cluster
        self._clock = clock or SystemClock()
        self._last: Identity | None = None
        self._ends: float | None = None
        self._renewed_at = float("-inf")

    async def identity(self, now: float, *, renew: bool = False) -> Identity:
        over = self._ends is not None and self._clock.now() >= self._ends - EARLY
        refused = renew and now - self._renewed_at >= RENEW_EVERY
        if self._last is None or over or refused:
            if refused:
                self._renewed_at = now
            self._last, self._ends = self._parse(await self._run())
        return self._last

    async def _run(self) -> bytes:
        interactive = self._is_interactive()
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                self._config.command,
                *self._config.arguments,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=writing,
                env={**os.environ, **(self._config.environment or {}), INFO: self._info(interactive)},
                start_new_session=not interactive,  # a session of its own ends as a whole, but has no terminal
            )
        except FileNotFoundError:
            os.close(reading)
            hint = (
                f": {printable(self._config.install_hint)}"
                if self._config.install_hint
                else ": install it or correct `command`"
            )
            raise AccessError(f"{self._origin}: the command {self._config.command} was not found{hint}") from None
        except OSError as error:
            os.close(reading)
            raise AccessError(
                f"{self._origin}: the command {self._config.command} cannot run: {error.strerror}"
            ) from None
        finally:
            os.close(writing)
        try:
            return await self._output(process, reading)
        finally:
            await _end(process, whole_session=not interactive)

    async def _output(self, process: asyncio.subprocess.Process, reading: int) -> bytes:
        printed = asyncio.StreamReader(MAX_OUTPUT)
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(printed), os.fdopen(reading, "rb")
        )
        try:
            async with asyncio.timeout(None if self._config.interactive_mode == ALWAYS else TIMEOUT):
                output = b""
                while chunk := await printed.read(MAX_OUTPUT):
                    output += chunk
                    if len(output) > MAX_OUTPUT:
                        raise AccessError(f"{self._origin}: the command {self._config.command} prints without end")
                code = await process.wait()
        except TimeoutError:
            raise AccessError(
                f"{self._origin}: the command {self._config.command} did not end within {TIMEOUT:g} s"
            ) from None
        finally:
            pipe.close()  # what the command started may hold its other end for long
        if code != 0:
            raise AccessError(
                f"{self._origin}: the command {self._config.command} failed with exit code {code}; "
                "what it said is above"
            )
        return output

    def _is_interactive(self) -> bool:
        if self._config.interactive_mode == NEVER:
            return False
        terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
        if self._config.interactive_mode == ALWAYS and not terminal:
            raise AccessError(
                f"{self._origin}: the command {self._config.command} asks on the terminal (interactiveMode: Always), "
                "and there is none: give Podium a token, a certificate or a command that needs no terminal"
            )
        return terminal

    def _info(self, interactive: bool) -> str:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._cluster is not None:
            spec["cluster"] = self._cluster
        info = {"kind": "ExecCredential", "apiVersion": self._config.api_version, "spec": spec}
        return msgspec.json.encode(info).decode()

    def _parse(self, output: bytes) -> tuple[Identity, float | None]:
        command = f"{self._origin}: the command {self._config.command}"
        try:
            printed = msgspec.json.decode(output, type=PrintedCredential)
        except msgspec.ValidationError as error:
            raise AccessError(f"{command} printed an ExecCredential that cannot be used: {error}") from None
        except UNDECODABLE:  # the error would quote what was printed
            raise AccessError(f"{command} printed no JSON: it must print an ExecCredential") from None
        if printed.api_version != self._config.api_version or printed.kind != "ExecCredential":
            found = f"{printed.kind or 'no kind'} of {printed.api_version or 'no apiVersion'}"
            raise AccessError(f"{command} printed {found}: `apiVersion` of the user says {self._config.api_version}")
        status = printed.status
        if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
            raise AccessError(f"{command} printed no status with a token or a certificate: are you logged in?")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise AccessError(f"{command} printed a certificate without its key, or a key without certificate")
        identity = Identity(
            bearer(status.token) if status.token else None,
            status.client_certificate_data.encode() or None,
            status.client_key_data.encode() or None,
            command,
        )
        ends = status.expiration_timestamp
        return identity, None if ends is None else (ends if ends.tzinfo else ends.replace(tzinfo=UTC)).timestamp()


async def _end(process: asyncio.subprocess.Process, *, whole_session: bool) -> None:
    """End the command and, in a session of its own, what it started."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        if whole_session:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    cancelled = False
    while process.returncode is None:  # it was killed: that takes a moment, also for a task that is cancelled meanwhile
        try:
            await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


def cluster_info(
    server: str,
    *,
    tls_server_name: str,
    insecure: bool,
    authority: bytes | None,
    proxy: str,
    disable_compression: bool,
    config: Any,
) -> dict[str, Any]:
    """The cluster as an ExecCredential tells of it."""
    given = {
        "server": server,
        "tls-server-name": tls_server_name,
        "insecure-skip-tls-verify": insecure,
        "certificate-authority-data": base64.b64encode(authority).decode() if authority else "",
        "proxy-url": proxy,
        "disable-compression": disable_compression,
    }
    info = {name: value for name, value in given.items() if value or name == "server"}
    info["config"] = config  # a Go client writes null where there is none, and plugins may rely on the field
    return info

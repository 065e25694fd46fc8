"""Finds the authorities whose client certificates are believed.

Two kinds of authorities: those that vouch for users, and those that vouch for a front proxy, which has found out who
the user is and says so in headers. Both stand in a ConfigMap that the API server publishes for exactly this use;
`--client-ca-file` names the first kind instead. What the ConfigMap says is looked up again every minute.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from podium.client import Client, ClientError
from podium.client.credentials import RotatedFile
from podium.errors import UserError
from podium.kube.bounds import UNDECODABLE

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
LOOK_EVERY = 60.0

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class FrontProxy(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy that authenticates users, and the headers that name the user."""

    authority: bytes
    allowed_names: tuple[str, ...] = ()
    """Common names its certificate may have; any when empty."""
    username_headers: tuple[str, ...] = ("X-Remote-User",)
    group_headers: tuple[str, ...] = ("X-Remote-Group",)
    extra_header_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)
    uid_headers: tuple[str, ...] = ()


class LookupFailedError(UserError):
    """The ConfigMap could not be read: one sentence says why."""


class ClientAuthorities:
    """`client_file`: --client-ca-file. `client` reads the ConfigMap; None: it is not read."""

    def __init__(
        self, client: Client | None, client_file: str = "", report: Callable[[str], None] = lambda _message: None
    ) -> None:
        self._client = client
        self._file = RotatedFile(Path(client_file)) if client_file else None
        self._report = report
        self._published = b""
        self._problem = ""
        self.front_proxy: FrontProxy | None = None
        self.looked = asyncio.Event()

    def users(self, now: float) -> bytes:
        """PEM certificates of the authorities that vouch for users."""
        if self._file is None:
            return self._published
        try:
            return self._file.read(now)
        except OSError as error:
            self._report_once(f"--client-ca-file {self._file.path} cannot be read: {error.strerror}")
            return b""

    def all(self, now: float) -> bytes:
        """Those and the ones that vouch for front proxies."""
        return self.users(now) + b"\n" + (self.front_proxy.authority if self.front_proxy is not None else b"")

    async def look_up(self) -> None:
        """Read the ConfigMap; raises LookupFailedError."""
        if self._client is None:
            return
        try:
            found = msgspec.json.decode(await self._client.get(CONFIG_MAP, timeout=10.0))
            data: dict[str, str] = found.get("data") or {}
            found_authorities = (_front_proxy(data), data.get("client-ca-file", "").encode())
        except ClientError as error:
            raise LookupFailedError(
                f"client certificates cannot be believed for want of their authorities: {error}"
            ) from None
        except (*UNDECODABLE, AttributeError, TypeError) as error:
            raise LookupFailedError(f"ConfigMap extension-apiserver-authentication makes no sense: {error}") from None
        self.front_proxy, self._published = found_authorities

    async def keep_current(self) -> None:
        """Look now and every minute, until cancelled."""
        while True:
            try:
                await self.look_up()
                self._problem = ""
            except LookupFailedError as error:
                self._report_once(str(error))
            self.looked.set()
            await asyncio.sleep(LOOK_EVERY)

    def _report_once(self, problem: str) -> None:
        """Report what went wrong, once for as long as it stays the same."""
        if problem != self._problem:
            self._problem = problem
            self._report(problem)


def certificates_in(pem: bytes) -> frozenset[bytes]:
    """The certificates of a PEM bundle, each as DER."""
    return frozenset(ssl.PEM_cert_to_DER_cert(found.decode("ascii")) for found in _CERTIFICATE.findall(pem))


def _front_proxy(data: dict[str, str]) -> FrontProxy | None:
    authority = data.get("requestheader-client-ca-file", "").encode()
    if not authority:
        return None

    def names(key: str) -> tuple[str, ...]:
        decoded: Any = msgspec.json.decode(data.get(key) or "[]", type=tuple[str, ...])
        names: tuple[str, ...] = decoded
        return names

    return FrontProxy(
        authority=authority,
        allowed_names=names("requestheader-allowed-names"),
        username_headers=names("requestheader-username-headers"),
        group_headers=names("requestheader-group-headers"),
        extra_header_prefixes=names("requestheader-extra-headers-prefix"),
        uid_headers=names("requestheader-uid-headers"),
    )

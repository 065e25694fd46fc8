"""Provides what a request carries to prove who sends it, and refreshes that.

An `Identity` is a header, a certificate, or both, or nothing. `Credentials` give the one of now; they are asked at most
once a second, and once more with `renew` when the server refused the last one. None of these ever shows a secret when
printed.
"""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import NamedTuple, Protocol

from podium.client.api_errors import AccessError

log = logging.getLogger(__name__)
REREAD_AFTER = 60.0


class Identity(NamedTuple):
    """A header, a certificate with its key, both or neither."""

    authorization: str | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    origin: str = ""
    """Where it came from, for messages."""

    def __repr__(self) -> str:
        parts = [name for name in ("authorization", "certificate") if getattr(self, name) is not None]
        return f"Identity({' and '.join(parts) or 'anonymous'})"


class Credentials(Protocol):
    """Something that gives the identity of now."""

    changing: bool
    """Whether it is worth asking again."""

    @property
    def awaited(self) -> str:
        """What a request waits for that gets no credentials in time."""

    async def identity(self, now: float, *, renew: bool = False) -> Identity:
        """The identity of now (loop time). `renew`: the server refused the last one. Raises AccessError."""


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


class FixedCredentials:
    """The same for ever: anonymous, a token, a name with a password, embedded certificates."""

    changing = False
    awaited = "the credentials do not come"

    def __init__(self, identity: Identity) -> None:
        self._identity = identity

    async def identity(self, now: float, *, renew: bool = False) -> Identity:
        return self._identity

    def read(self, now: float) -> Identity:
        return self._identity


class FileCredentials:
    """A token file or a certificate with its key in files, or both, that something else rotates.

    A file that cannot be read or a pair that is half replaced leaves the last good identity in use; the reason is
    logged once. `rest` is what does not come from files.
    """

    changing = True
    awaited = "the credentials cannot be read from their files in time"

    def __init__(
        self,
        rest: Identity,
        *,
        token: RotatedFile | None = None,
        certificate: RotatedFile | None = None,
        key: RotatedFile | None = None,
    ) -> None:
        self._last: Identity | None = None
        self._rest = rest
        self._token = token
        self._certificate = certificate
        self._key = key
        self._problem = ""

    async def identity(self, now: float, *, renew: bool = False) -> Identity:
        if renew:
            for file in (self._token, self._certificate, self._key):
                if file is not None:
                    file.forget()
        try:
            identity = self.read(now)
            self._problem = ""
            return identity
        except AccessError as error:
            if self._last is None:
                raise
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("%s; the last good credentials stay in use", error)
            return self._last

    def read(self, now: float) -> Identity:
        """What the files say now. Raises AccessError."""
        authorization, certificate, key, origin = self._rest
        if self._token is not None:
            try:
                authorization = bearer(_token(self._token, origin, now))
            except AccessError:
                if authorization is None:  # else `token` stands in until the file can be read
                    raise
        if self._certificate is not None:
            certificate = _content(self._certificate, f"{origin}: client-certificate", now)
        if self._key is not None:
            key = _content(self._key, f"{origin}: client-key", now)
        self._last = Identity(authorization, certificate, key, origin)
        return self._last


def _token(file: RotatedFile, origin: str, now: float) -> str:
    token = _content(file, f"{origin}: tokenFile", now).decode(errors="replace").strip()
    if not token:
        raise AccessError(f"{origin}: tokenFile {file.path} is empty: it must hold a bearer token")
    return token


def _content(file: RotatedFile, field: str, now: float) -> bytes:
    try:
        return file.read(now)
    except OSError as error:
        raise AccessError(f"{field} {file.path} cannot be read: {error.strerror}") from None


class RotatedFile:
    """A file's content as of the last look.

    Reads files that are replaced while Podium runs: tokens and certificates that something else rotates.

    A look costs one `stat`. Kubernetes swaps a symbolic link when it rotates what it mounts, others write in place
    or rename over; inode, size and time of change together tell all of these. Some file systems keep coarse times,
    so after a minute the content is read again whatever `stat` says.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content: bytes | None = None
        self._stat: tuple[int, int, int] | None = None
        self._read_at = float("-inf")

    def read(self, now: float) -> bytes:
        """The content, from memory where the file has not changed; `now` is any clock in seconds. Raises OSError."""
        found = self.path.stat()
        stat = (found.st_ino, found.st_size, found.st_mtime_ns)
        if self._content is None or stat != self._stat or now - self._read_at >= REREAD_AFTER:
            self._content = self.path.read_bytes()
            self._stat = stat
            self._read_at = now
        return self._content

    def forget(self) -> None:
        """Read it again at the next look."""
        self._content = None

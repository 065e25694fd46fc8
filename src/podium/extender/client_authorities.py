"""Reads the authorities that vouch for clients of an extender, again when the file was replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from podium.client.credentials import RotatedFile
from podium.serving.certificate import CertificateError
from podium.serving.log import LOG


def authorities_of(file: str) -> Callable[[], bytes]:
    """The PEM in the file, now and later; nothing without a file."""
    if not file:
        return lambda: b""
    return ClientAuthorityFile(file).read


class ClientAuthorityFile:
    """A file of authorities; what cannot be read any more stays as it was last."""

    def __init__(self, file: str) -> None:
        self._file = RotatedFile(Path(file))
        try:
            self._last = self._file.read(0.0)
        except OSError as problem:
            raise CertificateError(f"--client-ca-file {file} cannot be read: {problem.strerror}") from None

    def read(self) -> bytes:
        try:
            self._last = self._file.read(asyncio.get_running_loop().time())
        except OSError as problem:
            LOG.warning("--client-ca-file %s cannot be read: %s", self._file.path, problem.strerror)
        return self._last

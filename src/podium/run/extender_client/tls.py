"""Builds the TLS context for an extender from its configuration.

Without any setting the system's authorities count. An authority of one's own takes their place. `insecure` turns the
check off, and so, as in kube-scheduler, does `enableHTTPS` where no authority is given. A certificate to be shown needs
its key; one without the other is left out.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from podium.config.secrets import redacted
from podium.config.types import ExtenderConfig, ExtenderTLS
from podium.errors import UserError


class ExtenderSettingsError(UserError):
    """An extender cannot be called with the settings it has; one sentence that says which and why."""


def tls_context(extender: ExtenderConfig) -> ssl.SSLContext:
    settings = extender.tls_config or ExtenderTLS()
    try:
        return _context(settings, unchecked=settings.insecure or (extender.enable_https and not _authority(settings)))
    except (OSError, ValueError) as error:
        detail = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
        raise ExtenderSettingsError(
            f"the certificates of extender {redacted(extender.url_prefix)} cannot be used ({detail}); "
            "look at its tlsConfig in extenders"
        ) from None


def _context(settings: ExtenderTLS, *, unchecked: bool) -> ssl.SSLContext:
    authority = _authority(settings)
    context = ssl.create_default_context(cadata=authority.decode()) if authority else ssl.create_default_context()
    if unchecked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = _text(settings.cert_data, settings.cert_file)
    key = _text(settings.key_data, settings.key_file)
    if certificate and key:
        with tempfile.TemporaryDirectory() as folder:  # certificates can only be loaded from files
            both = Path(folder) / "pair"
            both.touch(mode=0o600)
            both.write_bytes(certificate + b"\n" + key)
            context.load_cert_chain(both)
    return context


def _authority(settings: ExtenderTLS) -> bytes:
    return _text(settings.ca_data, settings.ca_file)


def _text(data: bytes, path: str) -> bytes:
    """What is given in place goes before what is given as a file."""
    return data or (Path(path).read_bytes() if path else b"")

"""Provides TLS for endpoints whose certificates and authorities may be replaced while connections come and go.

A server is given one context for good. The one it is given here makes none of its connections itself: it has each made
by the newest of the contexts behind it. What cannot be used never replaces what can.

A client that shows a certificate must show one that a known authority vouches for: OpenSSL ends the handshake else,
where kube-scheduler would answer 401. Sessions are not resumed, so that no connection rests on an authority that is
trusted no more.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, Final

from podium.client import AccessError
from podium.client.tls import load_authority, load_certificate
from podium.serving.certificate import CertificateError, CertificatePair, CertificateSource

MIN_VERSIONS: Final = {
    "VersionTLS10": ssl.TLSVersion.TLSv1_2,
    "VersionTLS11": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
"""By Go's names. Versions before 1.2 are never spoken."""


class ServingTls:
    """`authorities` gives the PEM certificates of those whose clients are believed; empty: none are asked for."""

    def __init__(
        self,
        source: CertificateSource,
        authorities: Callable[[], bytes],
        now: Callable[[], float],
        report: Callable[[str], None],
        least: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    ) -> None:
        self._source = source
        self._authorities = authorities
        self._now = now
        self._report = report
        self._least = least
        self._known: tuple[CertificatePair, bytes] = (source.read(now()), authorities())
        self._failed: tuple[CertificatePair, bytes] | None = None
        try:
            self._newest = _context(*self._known, least)
        except AccessError as error:
            raise CertificateError(str(error)) from None
        self.context: ssl.SSLContext = _StandIn(self._refreshed)
        """What a server is to be given."""

    def _refreshed(self) -> ssl.SSLContext:
        try:
            wanted = (self._source.read(self._now()), self._authorities())
            if wanted not in (self._known, self._failed):
                self._failed = wanted
                self._newest, self._known = _context(*wanted, self._least), wanted
        except (AccessError, CertificateError) as error:
            self._report(f"keeping the serving certificate in use: {error}")
        return self._newest


class _StandIn(ssl.SSLContext):
    """Has its connections made by another context."""

    def __new__(cls, _newest: Callable[[], ssl.SSLContext]) -> _StandIn:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, newest: Callable[[], ssl.SSLContext]) -> None:
        self._newest = newest

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        return self._newest().wrap_bio(*args, **options)


def _context(pair: CertificatePair, authorities: bytes, least: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = least
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    load_certificate(context, pair.certificate, pair.key, pair.origin)
    if authorities.strip():
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        load_authority(context, authorities, "the authorities of clients")
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def anchor_of(connection: Any) -> bytes | None:
    """The authority (DER) that a client's certificate was found to rest on; None when it showed none.

    `connection` is an `ssl.SSLObject`; before Python 3.13 only what it wraps can tell.
    """
    get_chain = getattr(connection, "get_verified_chain", None)
    if get_chain is not None:
        chain = get_chain()
        return chain[-1] if chain else None
    chain = connection._sslobj.get_verified_chain()
    return ssl.PEM_cert_to_DER_cert(chain[-1].public_bytes()) if chain else None

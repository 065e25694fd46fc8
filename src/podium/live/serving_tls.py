"""TLS for the endpoints: certificates and authorities may be replaced while connections come and go.

OpenSSL fixes most of a connection in the context it starts with, but that context may hand it over to another one once
the client has said hello. So the server is given one context that never changes, and every new connection gets the
newest of those made since. What cannot be used never replaces what can.

A client that shows a certificate must show one that a known authority vouches for: OpenSSL ends the handshake else,
where kube-scheduler would answer 401. Sessions are not resumed, so that no connection rests on an authority that is
trusted no more.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

from podium.client import AccessError
from podium.client.tls import load_authority, load_certificate
from podium.live.certificate import CertificateError, Pair, Source


class ServingTls:
    """`authorities` gives the PEM certificates of those whose clients are believed; empty: none are asked for."""

    def __init__(
        self, source: Source, authorities: Callable[[], bytes], now: Callable[[], float], report: Callable[[str], None]
    ) -> None:
        self._source = source
        self._authorities = authorities
        self._now = now
        self._report = report
        self._known: tuple[Pair, bytes] = (source.read(now()), authorities())
        self._failed: tuple[Pair, bytes] | None = None
        try:
            self._newest = _context(*self._known)
        except AccessError as error:
            raise CertificateError(str(error)) from None
        self.context = _context(*self._known)
        """What a server is to be given."""
        self.context.sni_callback = self._hand_over

    def refresh(self) -> None:
        """Take up new certificates and authorities; the next connection is theirs.

        To be called when there are authorities where there were none: whether a client is asked for a certificate is
        settled before the connection is handed over.
        """
        try:
            wanted = (self._source.read(self._now()), self._authorities())
            if wanted in (self._known, self._failed):
                return
            self._failed = wanted
            self._newest, self._known = _context(*wanted), wanted
            self.context.verify_mode = self._newest.verify_mode
        except (AccessError, CertificateError) as error:
            self._report(f"keeping the serving certificate in use: {error}")

    def _hand_over(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        self.refresh()
        connection.context = self._newest


def _context(pair: Pair, authorities: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
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
    told = getattr(connection, "get_verified_chain", None)
    if told is not None:
        chain = told()
        return chain[-1] if chain else None
    chain = connection._sslobj.get_verified_chain()
    return ssl.PEM_cert_to_DER_cert(chain[-1].public_bytes()) if chain else None

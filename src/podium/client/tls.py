"""Builds TLS contexts: which authorities are trusted and which certificate is shown.

Trust is what Go's TLS would trust with the same kubeconfig, because that is what people tested theirs with: any
certificate in the bundle is an anchor, also an intermediate one or the server's own, and old authorities without the
extensions that newer OpenSSL versions ask for are accepted.

OpenSSL loads a certificate with its key from files only. Embedded ones are handed over through a file that exists in
memory, so that keys never touch a disk and a read-only root file system is no obstacle.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium.client.api_errors import AccessError


def tls_context(
    authority: bytes | None,
    *,
    authority_from: str = "",
    insecure: bool = False,
    certificate: bytes | None = None,
    key: bytes | None = None,
    certificate_from: str = "",
) -> ssl.SSLContext:
    """A client's context. `authority`: PEM, None for the system's. `…_from` name the place of each in messages."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority is None:
        context.load_default_certs()
    else:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        load_authority(context, authority, authority_from)
    if certificate is not None and key is not None:
        load_certificate(context, certificate, key, certificate_from)
    return context


def load_authority(context: ssl.SSLContext, pem: bytes, origin: str) -> None:
    try:  # bundles have comments between certificates, in any language
        context.load_verify_locations(cadata=pem.decode("ascii", errors="ignore"))
    except (ssl.SSLError, ValueError):
        raise AccessError(
            f"{origin} holds no PEM certificate: it must begin with -----BEGIN CERTIFICATE-----"
        ) from None


def load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes, origin: str) -> None:
    if b"-----BEGIN CERTIFICATE-----" not in certificate:
        raise AccessError(f"{origin}: the certificate is not PEM: it must begin with -----BEGIN CERTIFICATE-----")
    if b"PRIVATE KEY-----" not in key:
        raise AccessError(f"{origin}: the key is not PEM: it must begin with -----BEGIN PRIVATE KEY-----")
    if b"ENCRYPTED" in key:
        raise AccessError(f"{origin}: the key is encrypted: give it without a pass phrase")
    with _file_in_memory(certificate + b"\n" + key) as path:
        try:
            context.load_cert_chain(path, password=_no_password)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise AccessError(f"{origin}: the key does not belong to the certificate") from None
            raise AccessError(f"{origin}: the certificate or its key is damaged ({error.reason})") from None


def _no_password() -> str:
    return ""  # OpenSSL would ask on the terminal


@contextmanager
def _file_in_memory(content: bytes) -> Iterator[str]:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("podium-tls", os.MFD_CLOEXEC)
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp()
    try:
        os.write(descriptor, content)
        yield path
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            Path(path).unlink()

"""Reads from a certificate when it expires.

An API server answers an expired client certificate with a bare 401, and Python's ssl does not tell the dates of one's
own certificate. X.509 puts them at a fixed place, so a few steps through its DER encoding (tag, length, content) lead
there: Certificate → tbsCertificate → [version] serial algorithm issuer **validity** → notAfter.
"""

import ssl
from datetime import UTC, datetime

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_VERSION, _UTC_TIME = 0xA0, 0x17


def expiry(pem: bytes) -> datetime | None:
    """When the first certificate of `pem` ends; None if that cannot be read."""
    text = pem.decode("ascii", errors="replace")
    start, end = text.find(_BEGIN), text.find(_END)
    if start < 0 or end < start:
        return None
    try:
        der = ssl.PEM_cert_to_DER_cert(text[start : end + len(_END)] + "\n")
        return _not_after(der)
    except (ValueError, IndexError):
        return None


def _not_after(der: bytes) -> datetime:
    _, certificate, _ = _element(der)
    _, body, _ = _element(certificate)
    tag, _, rest = _element(body)
    for _ in range(3 if tag == _VERSION else 2):  # serial number, algorithm, issuer; the version may be left out
        _, _, rest = _element(rest)
    _, validity, _ = _element(rest)
    _, _, after_not_before = _element(validity)
    tag, moment, _ = _element(after_not_before)
    pattern = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(moment.decode("ascii"), pattern).replace(tzinfo=UTC)


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """Tag, content and what follows of the first element."""
    tag, length, start = der[0], der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start], "big")
    if len(der) < start + length:
        raise ValueError("cut short")
    return tag, der[start : start + length], der[start + length :]

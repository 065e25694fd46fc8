"""Reads or makes the certificate that endpoints are served under.

Files that are given are read again when they have been replaced. Without any, a self-signed certificate is
made, as kube-scheduler does: it keeps others from listening in, and proves nothing. Making one takes a key and a
signature, for which Python's own library has no words; the `openssl` program has, and is there wherever its library's
certificates were packaged. Where it is not, files must be given.
"""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple, Protocol

from podium.client.credentials import RotatedFile
from podium.errors import UserError

NAME = "podium"
DAYS = 365


class CertificateError(UserError):
    """There is no certificate to serve under: one sentence says why and what to give."""


class CertificatePair(NamedTuple):
    """A certificate (with its chain) and its key, both PEM."""

    certificate: bytes
    key: bytes
    origin: str
    """Where they came from, for messages."""


class CertificateSource(Protocol):
    """Something that gives a certificate and its key."""

    def read(self, now: float) -> CertificatePair:
        """The pair as of now, any clock in seconds; raises CertificateError."""


class PairOfFiles:
    """A certificate and its key in two files, read again when they are replaced."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = RotatedFile(certificate)
        self._key = RotatedFile(key)

    def read(self, now: float) -> CertificatePair:
        origin = f"{self._certificate.path} with {self._key.path}"
        try:
            return CertificatePair(self._certificate.read(now), self._key.read(now), origin)
        except OSError as error:
            raise CertificateError(f"{error.filename} cannot be read: {error.strerror}") from None


class SelfSigned:
    """A certificate made on the spot for these names and addresses."""

    def __init__(self, *hosts: str) -> None:
        made = _openssl(hosts)
        end = b"-----END PRIVATE KEY-----"
        key, _, certificate = made.partition(end)
        self._pair = CertificatePair(certificate, key + end + b"\n", "the certificate made at the start")

    def read(self, _now: float) -> CertificatePair:
        return self._pair


def certificate_of(
    certificate_file: str = "", key_file: str = "", folder: str = "", *, hosts: tuple[str, ...] = ("localhost",)
) -> CertificateSource:
    """The source that options ask for: both files; or a folder, where a pair is kept and first made if need be; or
    a certificate that lives in memory only."""
    if bool(certificate_file) != bool(key_file):
        given, missing = ("--tls-cert-file", "--tls-private-key-file")[:: 1 if certificate_file else -1]
        raise CertificateError(f"{given} is given without {missing}: give both, or neither")
    if certificate_file:
        return PairOfFiles(Path(certificate_file), Path(key_file))
    if not folder:
        return SelfSigned(*hosts)
    certificate, key = Path(folder) / f"{NAME}.crt", Path(folder) / f"{NAME}.key"
    if not (certificate.exists() and key.exists()):
        _write(SelfSigned(*hosts).read(0.0), certificate, key)
    return PairOfFiles(certificate, key)


def _write(pair: CertificatePair, certificate: Path, key: Path) -> None:
    try:
        certificate.parent.mkdir(parents=True, exist_ok=True)
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        certificate.write_bytes(pair.certificate)
    except OSError as error:
        raise CertificateError(
            f"--cert-dir: {error.filename} cannot be written: {error.strerror}; give a folder that can be written to"
        ) from None


def _openssl(hosts: tuple[str, ...]) -> bytes:
    program = shutil.which("openssl")
    if program is None:
        raise CertificateError(
            "there is no openssl program to make a certificate with: give --tls-cert-file and --tls-private-key-file"
        )
    names = ",".join(f"{'IP' if _is_address(host) else 'DNS'}:{host}" for host in dict.fromkeys(hosts))
    command = [
        program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-keyout", "/dev/stdout", "-out", "/dev/stdout", "-days", str(DAYS), "-subj", f"/CN={NAME}",
        "-addext", f"subjectAltName={names}", "-addext", "extendedKeyUsage=serverAuth",
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, timeout=30, check=False)
    if ended.returncode or b"-----END CERTIFICATE-----" not in ended.stdout:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        raise CertificateError(
            f"openssl could not make a certificate ({lines[-1] if lines else 'it printed nothing'}): "
            "give --tls-cert-file and --tls-private-key-file"
        )
    return ended.stdout


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

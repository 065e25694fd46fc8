"""A certificate authority that lives as long as one control plane.

Every control plane makes its own, so nothing secret is kept in the tree and no certificate expires in a test
that did not ask for it.
Keys are P-256: made in under a millisecond, where RSA keys would take longer than etcd needs to start.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=2)


class KeyPair(NamedTuple):
    """Where a certificate and its private key are, both as PEM."""

    certificate: Path
    key: Path


class CertificateAuthority:
    """Signs server and client certificates into `folder`; `certificate` is the path of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("podium-testbed", ())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        own = _unsigned(self._name, self._name, self._key.public_key()).add_extension(constraints, critical=True)
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(_pem(own.sign(self._key, hashes.SHA256())))

    def issue(
        self,
        common_name: str,
        *,
        organizations: Sequence[str] = (),
        hosts: Sequence[str] = (),
        lifetime: timedelta = LIFETIME,
    ) -> KeyPair:
        """A certificate for a server on `hosts` (names or addresses), or for the user `common_name` in the groups
        `organizations`, which is how Kubernetes reads a client certificate. It is valid from some minutes ago to
        `lifetime` from now, which may be in the past. Issued again, it replaces the files of the first."""
        key = ec.generate_private_key(ec.SECP256R1())
        request = _unsigned(_name(common_name, organizations), self._name, key.public_key(), lifetime).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        if hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in hosts])
            request = request.add_extension(names, critical=False)
        file_name = common_name.replace(":", "-").replace("/", "-")
        pair = KeyPair(self._folder / f"{file_name}.crt", self._folder / f"{file_name}.key")
        pair.certificate.write_bytes(_pem(request.sign(self._key, hashes.SHA256())))
        write_private_key(pair.key, key)
        return pair


def write_private_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    """Write the key unencrypted, readable by its owner only."""
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: timedelta = LIFETIME
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + lifetime)
    )


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)

"""Files that are replaced underneath, and certificates that end."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from podium.client.access import expiry
from podium.client.credentials import REREAD_AFTER, RotatedFile
from tools.testbed.certificates import CertificateAuthority


def test_a_file_that_stays_is_read_once_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one")
    file = RotatedFile(path)
    assert file.read(0) == b"one"
    times = path.stat()
    path.write_text("two")  # of the same length, at what the file system says is the same time
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert file.read(REREAD_AFTER - 1) == b"one"
    assert file.read(REREAD_AFTER) == b"two"


def test_a_change_is_seen_at_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one")
    file = RotatedFile(path)
    assert file.read(0) == b"one"
    path.write_text("longer")
    assert file.read(0) == b"longer"


def test_a_link_that_leads_elsewhere_is_followed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (0, 0))
    link = tmp_path / "link"
    link.symlink_to("a")
    file = RotatedFile(link)
    assert file.read(0) == b"a"
    (tmp_path / "new").symlink_to("b")
    (tmp_path / "new").rename(link)
    assert file.read(0) == b"b"


def test_what_was_forgotten_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("one")
    file = RotatedFile(path)
    file.read(0)
    times = path.stat()
    path.write_text("two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    file.forget()
    assert file.read(0) == b"two"


@pytest.mark.parametrize("years", [0, 30], ids=["UTCTime", "GeneralizedTime"])
def test_the_end_of_a_certificate_is_read_from_it(tmp_path: Path, years: int) -> None:
    pair = CertificateAuthority(tmp_path).issue("jane", lifetime=timedelta(days=365 * years, minutes=7))
    pem = pair.certificate.read_bytes()
    ends = expiry(pem)
    assert ends == x509.load_pem_x509_certificate(pem).not_valid_after_utc
    assert ends is not None
    assert ends > datetime.now(UTC)


@pytest.mark.parametrize(
    "pem",
    [
        b"",
        b"\xff",
        b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nMAAwADAA\n-----END CERTIFICATE-----\n",
    ],
)
def test_what_is_no_certificate_has_no_end(pem: bytes) -> None:
    assert expiry(pem) is None

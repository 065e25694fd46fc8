"""Certificates that processes serve under: made on the spot, kept in a folder, or replaced while it runs."""

from __future__ import annotations

import asyncio
import re
import ssl
import subprocess
from pathlib import Path

import pytest

from podium.serving.certificate import CertificateError, PairOfFiles, SelfSigned, certificate_of
from podium.serving.tls import ServingTls
from tests.podium.serving.servings import LOOPBACK, ask, served
from tools.testbed.certificates import CertificateAuthority


def test_without_files_a_certificate_is_made_for_the_names_given() -> None:
    tls = ServingTls(SelfSigned("localhost", LOOPBACK), lambda: b"", lambda: 0.0, print)

    async def main() -> bytes:
        async with served(tls=tls.context) as address:
            assert (await ask(f"{address}/healthz")).text == "ok"
            return await shown_certificate(address)

    certificate = asyncio.run(main())
    text = subprocess.run(
        ["openssl", "x509", "-inform", "der", "-noout", "-text"], input=certificate, capture_output=True, check=True
    ).stdout.decode()
    assert "DNS:localhost, IP Address:127.0.0.1" in text
    assert re.search("CN ?= ?podium", text)  # with spaces or without, by the version of openssl


def test_replaced_files_are_shown_to_the_next_client_and_broken_ones_to_nobody(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    pair = authority.issue("server", hosts=[LOOPBACK])
    reports: list[str] = []
    time = 0.0
    tls = ServingTls(PairOfFiles(pair.certificate, pair.key), lambda: b"", lambda: time, reports.append)

    async def main() -> list[bytes]:
        nonlocal time
        async with served(tls=tls.context) as address:
            seen = [await shown_certificate(address)]
            authority.issue("server", hosts=[LOOPBACK])
            time += 100
            seen.append(await shown_certificate(address))
            pair.certificate.write_text("nonsense")
            time += 100
            seen += [await shown_certificate(address), await shown_certificate(address)]
            pair.certificate.unlink()
            return [*seen, await shown_certificate(address)]

    first, second, *later = asyncio.run(main())
    assert first != second
    assert later == [second] * 3
    assert "is not PEM" in reports[0]
    assert len(reports) == 2, "said once, and once more that the file is gone"


@pytest.mark.parametrize(
    ("certificate", "key", "complaint"),
    [
        ("a.crt", "", "--tls-cert-file is given without --tls-private-key-file: give both, or neither"),
        ("", "a.key", "--tls-private-key-file is given without --tls-cert-file: give both, or neither"),
    ],
)
def test_half_a_pair_is_refused(certificate: str, key: str, complaint: str) -> None:
    with pytest.raises(CertificateError, match=complaint):
        certificate_of(certificate, key)


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    source = certificate_of(str(tmp_path / "a.crt"), str(tmp_path / "a.key"))
    with pytest.raises(CertificateError, match=r"a\.crt cannot be read: No such file"):
        ServingTls(source, lambda: b"", lambda: 0.0, print)


def test_a_folder_keeps_the_certificate_that_was_made(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    made = certificate_of(folder=str(folder)).read(0.0)
    assert (folder / "podium.key").stat().st_mode & 0o777 == 0o600
    assert certificate_of(folder=str(folder)).read(0.0) == made


def test_without_openssl_files_must_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CertificateError, match=r"there is no openssl program .* give --tls-cert-file"):
        certificate_of()


async def shown_certificate(address: str) -> bytes:
    """The certificate a server shows, as DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _reader, writer = await asyncio.open_connection(LOOPBACK, int(address.rpartition(":")[2]), ssl=context)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return certificate

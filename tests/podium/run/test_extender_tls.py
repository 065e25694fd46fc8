"""Whose certificates are believed, and which is shown."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from podium.config.types import ExtenderConfig, ExtenderTLS
from podium.framework.extender import ExtenderError
from podium.run.extender_messages import ObjectTexts
from podium.run.http_extender import ExtenderSettingsError, HttpExtender
from tests.podium.run.extender_server import ExtenderServer
from tools.kit.builders import make_node, make_pod
from tools.testbed.certificates import CertificateAuthority

TEXTS = ObjectTexts(lambda _key: None, lambda _name: None)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


def server_context(
    authority: CertificateAuthority, *, host: str = "127.0.0.1", clients: bool = False
) -> ssl.SSLContext:
    pair = authority.issue(f"server-{host}", hosts=[host])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.certificate)
    return context


def asked(context: ssl.SSLContext, *, enable_https: bool = False, **tls: Any) -> str:
    """ "" when an extender with these settings is reached, else what was wrong."""
    with ExtenderServer(tls=context, filter=lambda _body: {"Nodes": {"items": []}}) as server:
        config = ExtenderConfig(
            url_prefix=server.url,
            filter_verb="filter",
            enable_https=enable_https,
            tls_config=ExtenderTLS(**tls) if tls else None,
        )
        extender = HttpExtender(config, TEXTS)
        try:
            extender.filter(make_pod(), [make_node()])
        except ExtenderError as error:
            return str(error).replace(server.url, "URL")
        finally:
            extender.close()
        return ""


UNKNOWN_ISSUER = 'Post "URL/filter": tls: failed to verify certificate: '


def test_an_unknown_authority_is_not_believed(authority: CertificateAuthority) -> None:
    assert asked(server_context(authority)).startswith(UNKNOWN_ISSUER)
    assert asked(server_context(authority), server_name="127.0.0.1").startswith(UNKNOWN_ISSUER)


@pytest.mark.parametrize("enable_https", [True, False])
def test_an_authority_of_ones_own_is_believed_as_file_or_data(
    authority: CertificateAuthority, enable_https: bool
) -> None:
    path = authority.certificate
    assert asked(server_context(authority), ca_file=str(path), enable_https=enable_https) == ""
    assert asked(server_context(authority), ca_data=path.read_bytes(), ca_file="/nowhere") == ""


def test_a_certificate_for_another_host_is_not_believed_unless_that_name_is_expected(
    authority: CertificateAuthority,
) -> None:
    ca = str(authority.certificate)
    context = server_context(authority, host="extender.example")
    assert asked(context, ca_file=ca).startswith(UNKNOWN_ISSUER)
    assert asked(context, ca_file=ca, server_name="extender.example") == ""


def test_insecure_believes_anybody(authority: CertificateAuthority) -> None:
    assert asked(server_context(authority, host="other"), insecure=True) == ""


def test_enable_https_without_an_authority_believes_anybody_as_in_kube_scheduler(
    authority: CertificateAuthority,
) -> None:
    assert asked(server_context(authority, host="other"), enable_https=True) == ""
    assert asked(server_context(authority, host="other"), enable_https=True, server_name="x") == ""


@pytest.mark.parametrize("given", ["files", "data"])
def test_a_certificate_of_ones_own_is_shown(authority: CertificateAuthority, given: str) -> None:
    pair = authority.issue("podium")
    shown: dict[str, Any] = (
        {"cert_file": str(pair.certificate), "key_file": str(pair.key)}
        if given == "files"
        else {"cert_data": pair.certificate.read_bytes(), "key_data": pair.key.read_bytes()}
    )
    context = server_context(authority, clients=True)
    assert asked(context, insecure=True, **shown) == ""


def test_a_certificate_without_its_key_is_not_shown(authority: CertificateAuthority) -> None:
    pair = authority.issue("podium")
    context = server_context(authority, clients=True)
    assert asked(context, insecure=True, cert_file=str(pair.certificate)) != ""


@pytest.mark.parametrize(
    ("tls", "told"),
    [
        ({"ca_file": "/nowhere/ca.pem"}, "No such file or directory: /nowhere/ca.pem"),
        ({"ca_data": b"nonsense"}, ""),
        ({"cert_data": b"nonsense", "key_data": b"nonsense"}, ""),
    ],
)
def test_certificates_that_cannot_be_used_are_named_at_the_start(
    tls: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ExtenderSettingsError) as failed:
        HttpExtender(ExtenderConfig(url_prefix="http://extender", tls_config=ExtenderTLS(**tls)), TEXTS)
    sentence = str(failed.value)
    assert sentence.startswith("the certificates of extender http://extender cannot be used (")
    assert told in sentence

"""The settings of sources: what is refused, and where it stands."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.config.durations import decode_hook
from podium.config.field import FieldPath
from podium.config.strict import decode
from podium.load.series import NodeMatch
from podium.load.settings import SourceSettings

PROMETHEUS = {"kind": "prometheus", "address": "http://prometheus:9090"}


def complaints(kind: type[SourceSettings | NodeMatch], settings: dict[str, Any]) -> list[str]:
    checked = msgspec.convert(settings, kind, dec_hook=decode_hook)
    return [str(error) for error in checked.validate(FieldPath(("s",)))]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"address": "https://[fd00::1]:9090/prometheus/"},
        {"tokenFile": "/token", "tls": {"caFile": "/ca", "certFile": "/c", "keyFile": "/k", "serverName": "x"}},
        {"basicAuth": {"username": "me", "passwordFile": "/p"}},
        {"headers": [{"name": "X-Scope-OrgID", "value": "a b"}]},
        {"timeout": "1s", "refreshInterval": "15s", "maxAge": "15s", "maxResponseBytes": 1},
        {"kind": "load-watcher"},
    ],
)
def test_settings_that_are_fine(settings: dict[str, Any]) -> None:
    assert complaints(SourceSettings, PROMETHEUS | settings) == []


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"address": ""}, "s.address: Required value"),
        ({"address": "prometheus:9090"}, "s.address: Invalid value"),
        ({"address": "ftp://x"}, "s.address: Invalid value"),
        ({"address": "http://"}, "s.address: Invalid value"),
        ({"address": "http://x:99999"}, "s.address: Invalid value"),
        ({"address": "http://x?a=b"}, "s.address: Invalid value"),
        ({"address": "http://me:secret@x"}, "s.address: Forbidden"),
        ({"kind": "metrics-server"}, "s.address: Forbidden"),
        ({"token": "a", "tokenFile": "b"}, "s.tokenFile: Forbidden"),
        ({"token": "a", "basicAuth": {"username": "me"}}, "s.basicAuth: Forbidden"),
        ({"basicAuth": {"username": "a:b"}}, "s.basicAuth.username: Invalid value"),
        ({"basicAuth": {"username": "a", "password": "b", "passwordFile": "c"}}, "s.basicAuth.passwordFile: Forbidden"),
        ({"headers": [{"name": "a b"}]}, "s.headers[0].name: Invalid value"),
        ({"headers": [{"name": "a", "value": "b\r\nc"}]}, "s.headers[0].value: Forbidden"),
        ({"tls": {"certFile": "c"}}, "s.tls.keyFile: Required value"),
        ({"tls": {"keyFile": "c"}}, "s.tls.certFile: Required value"),
        ({"tls": {"caFile": "c", "insecureSkipVerify": True}}, "s.tls.caFile: Forbidden"),
        ({"timeout": "0s"}, "s.timeout: Invalid value"),
        ({"refreshInterval": "-1s"}, "s.refreshInterval: Invalid value"),
        ({"maxAge": "10s"}, "s.maxAge: Invalid value"),
        ({"maxResponseBytes": 0}, "s.maxResponseBytes: Invalid value"),
    ],
)
def test_settings_that_are_refused_and_where(settings: dict[str, Any], field: str) -> None:
    (complaint,) = complaints(SourceSettings, PROMETHEUS | settings)
    assert complaint.startswith(field)
    assert "secret" not in complaint


def test_a_kind_that_does_not_exist_is_not_decoded() -> None:
    _, (mistake,) = decode({"kind": "graphite"}, SourceSettings)
    assert str(mistake.path) == "kind"
    _, (mistake,) = decode({"adress": "http://x"}, SourceSettings)
    assert "did you mean" in mistake.hint


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"regex": "x"}, "s.label: Required value"),
        ({"label": "a", "regex": "("}, "s.regex: Invalid value"),
        ({"label": "a", "regex": "x", "replacement": "$1"}, "s.replacement: Invalid value"),
        ({"label": "a", "regex": "(x)", "replacement": "${name}"}, "s.replacement: Invalid value"),
    ],
)
def test_relabellings_that_are_refused_and_where(settings: dict[str, Any], field: str) -> None:
    replaced = {"replacement": ""} | settings
    (complaint,) = complaints(NodeMatch, replaced)
    assert complaint.startswith(field)

from typing import Any

import pytest

from podium.config.field import FieldError, FieldPath
from podium.config.secrets import redacted, without_secrets


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"token": "s3cret", "tokenFile": "/run/token"}, {"token": "REDACTED", "tokenFile": "/run/token"}),
        ({"token": ""}, {"token": ""}),
        (
            {"basicAuth": {"username": "u", "password": "s3cret", "passwordFile": ""}},
            {"basicAuth": {"username": "u", "password": "REDACTED", "passwordFile": ""}},
        ),
        (
            {"headers": [{"name": "X-Key", "value": "s3cret"}]},
            {"headers": [{"name": "X-Key", "value": "REDACTED"}]},
        ),
        ({"headers": {"X-Key": "s3cret"}}, {"headers": {"X-Key": "REDACTED"}}),
        ({"extraHeader": "X-Key: s3cret"}, {"extraHeader": "REDACTED"}),
        (
            {"tlsConfig": {"keyData": "s3cret", "keyFile": "/k", "certData": "c"}},
            {"tlsConfig": {"keyData": "REDACTED", "keyFile": "/k", "certData": "c"}},
        ),
        ({"urlPrefix": "http://u:s3cret@host/x"}, {"urlPrefix": "http://u:***@host/x"}),
        ({"apiKey": "s3cret", "clientSecret": ["s3cret"]}, {"apiKey": "REDACTED", "clientSecret": "REDACTED"}),
        ({"secretName": "n", "tokenExpirationSeconds": 3}, {"secretName": "n", "tokenExpirationSeconds": 3}),
        ({"weight": 5, "resources": [{"name": "cpu"}]}, {"weight": 5, "resources": [{"name": "cpu"}]}),
    ],
)
def test_secrets_of_a_configuration_are_replaced_and_all_else_stays(given: Any, shown: Any) -> None:
    assert without_secrets({"a": [given]}) == {"a": [shown]}


@pytest.mark.parametrize(
    ("steps", "value", "shown"),
    [
        (("args", "source", "token"), "s3cret", '"REDACTED"'),
        (("args", "source", "token"), ["s3cret"], '"REDACTED"'),
        (("args", "basicAuth", "password"), {"s3cret": 1}, '"REDACTED"'),
        (("args", "headers", 0, "value"), "s3cret", '"REDACTED"'),
        (("args", "headers", 0, "name"), "X Y", '"X Y"'),
        (("extenders", 0, "tlsConfig", "keyData"), "s3cret", '"REDACTED"'),
        (("extenders", 0, "urlPrefix"), "http://u:s3cret@h", '"http://u:***@h"'),
        (("args", "source", "tokenFile"), "/run/token", '"/run/token"'),
        (("args", "weight"), -1, "-1"),
    ],
)
def test_a_message_about_a_field_does_not_quote_a_secret(steps: tuple[str | int, ...], value: Any, shown: str) -> None:
    path = FieldPath(steps)
    for error in (
        FieldError.invalid(path, value, "why"),
        FieldError.duplicate(path, value),
        FieldError.not_supported(path, value, ["x"]),
    ):
        assert f" value: {shown}" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer s3cret-s3cret",
        "b'Authorization: Bearer s3cret\\x01s3cret'",
        "{'Authorization': 'Bearer s3cret', 'Accept': 'x'}",
        '{"authorization":"Basic s3cret"}',
        "Proxy-Authorization: Basic s3crets3cret",
        "the header Bearer s3cret.s3cret.s3cret is wrong",
        'Post "https://user:s3cret@host:1/filter": EOF',
        "postgres://user:s3cret@db/x and http://other:s3cret@h",
        "https://user:s3@cret@host",
    ],
)
def test_credentials_are_hidden_wherever_they_stand_in_a_text(text: str) -> None:
    shown = redacted(text)
    assert "s3cret" not in shown
    assert "cret@" not in shown


@pytest.mark.parametrize(
    "text",
    [
        "it must hold a bearer token",
        "give a bearer token or basic auth",
        "http://host:8080/path@2",
        "pod team@x/a: node n1: 10:30@noon",
        'failed filter with extender at URL http://host/filter, code 500 "a@b"',
    ],
)
def test_text_without_credentials_stays_as_it_is(text: str) -> None:
    assert redacted(text) == text

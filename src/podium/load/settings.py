"""Defines the settings of a source of measured load, the same in the arguments of every plugin that reads one.

    source:
      kind: prometheus
      address: https://prometheus.monitoring:9090
      tokenFile: /var/run/secrets/prometheus/token
      tls: {caFile: /etc/prometheus/ca.crt}
      refreshInterval: 30s
      maxAge: 5m

A plugin has a field of type `SourceSettings` in its Args and yields from `source.validate(path.child("source"))` in its
own `validate`, or from `source_errors` where the address may also stand in a field `prometheusAddress`. Sources with
equal settings are one source. What is secret is not shown when settings are printed; a file is better than a value in
the configuration, because files are read again and can be rotated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from podium.config.durations import SECOND, Duration
from podium.config.field import FieldError, FieldPath

SourceKind = Literal["prometheus", "metrics-server", "load-watcher", "annotations"]

WITH_ADDRESS: frozenset[str] = frozenset({"prometheus", "load-watcher"})
"""Sources that are servers of their own; the others speak through the API server."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class BasicAuth(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A user name and a password, in place or in a file."""

    username: str = ""
    password: str = ""
    password_file: str = ""

    def __repr__(self) -> str:
        return f"BasicAuth({self.username!r})"


class Header(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One more header of every request, such as X-Scope-OrgID."""

    name: str = ""
    value: str = ""

    def __repr__(self) -> str:
        return f"Header({self.name!r})"


class Tls(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How the server's certificate is checked, and which one it is shown."""

    ca_file: str = ""
    """Who may sign the server's certificate; the system's authorities when empty."""
    cert_file: str = ""
    key_file: str = ""
    server_name: str = ""
    insecure_skip_verify: bool = False


class SourceSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Where measured load comes from, and how it is asked for."""

    kind: SourceKind = "prometheus"
    address: str = ""
    """The server's URL, for prometheus and load-watcher: `http://prometheus.monitoring:9090`."""
    token: str = ""
    token_file: str = ""
    basic_auth: BasicAuth | None = None
    headers: tuple[Header, ...] = ()
    tls: Tls = Tls()
    timeout: Duration = Duration(10 * SECOND)
    """How long one request may take."""
    max_response_bytes: int = 64 * 2**20
    refresh_interval: Duration = Duration(30 * SECOND)
    max_age: Duration = Duration(300 * SECOND)
    """Values measured longer ago than this are given up: nothing is known of the node then."""

    def __repr__(self) -> str:
        return f"SourceSettings({str(self)!r})"

    def __str__(self) -> str:
        return f"{self.kind} {self.address}" if self.address else self.kind

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if self.kind not in get_args(SourceKind):
            yield FieldError.not_supported(path.child("kind"), self.kind, get_args(SourceKind))
        yield from self._validate_address(path.child("address"))
        yield from self._validate_credentials(path)
        yield from self._validate_tls(path.child("tls"))
        for name in ("timeout", "refresh_interval", "max_age"):
            if (value := getattr(self, name)) <= 0:
                yield FieldError.invalid(path.child(_camel(name)), value, "must be greater than zero")
        if 0 < self.max_age < self.refresh_interval:
            detail = "must not be shorter than refreshInterval, or values are given up before new ones come"
            yield FieldError.invalid(path.child("maxAge"), self.max_age, detail)
        if self.max_response_bytes <= 0:
            at = path.child("maxResponseBytes")
            yield FieldError.invalid(at, self.max_response_bytes, "must be greater than zero")

    def _validate_address(self, path: FieldPath) -> Iterator[FieldError]:
        if self.kind not in WITH_ADDRESS:
            if self.address:
                yield FieldError.forbidden(path, f"{self.kind} is reached through the API server")
            return
        if not self.address:
            yield FieldError.required(path, f"where {self.kind} listens, such as http://{self.kind}:9090")
            return
        try:
            url = urlsplit(self.address)
            fits = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
        except ValueError:
            fits = False
        if not fits:
            yield FieldError.invalid(path, self.address, "must be a URL that starts with http:// or https://")
        elif url.username is not None:
            yield FieldError.forbidden(path, "a user name in the address would be logged: write it under basicAuth")
        elif url.query or url.fragment:
            yield FieldError.invalid(path, self.address, "must end with the path; queries are added to it")

    def _validate_credentials(self, path: FieldPath) -> Iterator[FieldError]:
        if self.token and self.token_file:
            yield FieldError.forbidden(path.child("tokenFile"), "there is a token already")
        if self.basic_auth is not None:
            at, basic = path.child("basicAuth"), self.basic_auth
            if self.token or self.token_file:
                yield FieldError.forbidden(at, "there is a token already")
            if not basic.username or ":" in basic.username:
                yield FieldError.invalid(at.child("username"), basic.username, "must be a name without a colon")
            if basic.password and basic.password_file:
                yield FieldError.forbidden(at.child("passwordFile"), "there is a password already")
        for i, header in enumerate(self.headers):
            at = path.child("headers").index(i)
            if not _HEADER_NAME.fullmatch(header.name):
                yield FieldError.invalid(at.child("name"), header.name, "must be the name of an HTTP header")
            if any(character in header.value for character in "\r\n\0"):
                yield FieldError.forbidden(at.child("value"), "a header is one line")

    def _validate_tls(self, path: FieldPath) -> Iterator[FieldError]:
        if bool(self.tls.cert_file) != bool(self.tls.key_file):
            missing = "keyFile" if self.tls.cert_file else "certFile"
            yield FieldError.required(path.child(missing), "certFile and keyFile go together")
        if self.tls.ca_file and self.tls.insecure_skip_verify:
            yield FieldError.forbidden(path.child("caFile"), "with insecureSkipVerify nothing is verified")


def at_address(prometheus_address: str | None, source: SourceSettings) -> SourceSettings:
    """The source of a plugin whose arguments have `prometheusAddress` as a short form of `source.address`."""
    return replace(source, address=prometheus_address) if prometheus_address else source


def source_errors(prometheus_address: str | None, source: SourceSettings, path: FieldPath) -> Iterator[FieldError]:
    """What is wrong with the source of such a plugin, each at the field in which it was written."""
    at = path.child("source")
    if prometheus_address and source.address:
        yield FieldError.forbidden(at.child("address"), "prometheusAddress is set already")
    for error in at_address(prometheus_address, source).validate(at):
        of_address = prometheus_address and error.path == at.child("address")
        yield FieldError(path.child("prometheusAddress"), error.body) if of_address else error


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)

"""Builds TLS and access control of the endpoints from the command line's options.

The defaults are kube-scheduler's: HTTPS on port 10259 with a certificate made on the spot, health for everybody, the
rest for users that the API server knows and allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from podium.client import Access, Client, load_access
from podium.serving.certificate import certificate_of
from podium.serving.endpoints.access import ALWAYS_ALLOWED, DelegatedAccessControl
from podium.serving.endpoints.client_certificates import ClientAuthorities
from podium.serving.log import LOG
from podium.serving.tls import MIN_VERSIONS, ServingTls

REVIEWS_PER_SECOND = 200
"""How often a second the API server is asked at most about requests to the endpoints."""


class ServingOptions(NamedTuple):
    """Named as the flags are."""

    bind_address: str = "0.0.0.0"
    secure_port: int = 10259
    """0: nothing is served."""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    cert_dir: str = ""
    client_ca_file: str = ""
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    authentication_skip_lookup: bool = False
    authentication_tolerate_lookup_failure: bool = True
    authorization_always_allow_paths: tuple[str, ...] = tuple(ALWAYS_ALLOWED)
    flags: Mapping[str, str] | None = None
    """All that was typed, and the defaults of what was not, for `/flagz`."""
    tls_min_version: str = ""


class EndpointAccess(NamedTuple):
    """Who is let in, under which certificate, and the clients that ask the API server about it."""

    control: DelegatedAccessControl
    tls: ServingTls
    clients: tuple[Client, ...]


def build_endpoint_access(options: ServingOptions, access: Access) -> EndpointAccess:
    """Raises CertificateError or AccessError for files that cannot be used."""
    clients: list[Client] = []

    def client_of(kubeconfig: str) -> Client:
        clients.append(
            Client(
                load_access(kubeconfig) if kubeconfig else access, qps=REVIEWS_PER_SECOND, burst=2 * REVIEWS_PER_SECOND
            )
        )
        return clients[-1]

    authentication = client_of(options.authentication_kubeconfig)
    authorities = ClientAuthorities(
        None if options.authentication_skip_lookup else authentication, options.client_ca_file, LOG.warning
    )
    control = DelegatedAccessControl(
        authentication,
        client_of(options.authorization_kubeconfig),
        authorities,
        always_allow_paths=options.authorization_always_allow_paths,
        tolerate_lookup_failure=options.authentication_tolerate_lookup_failure,
        report=LOG.warning,
    )
    source = certificate_of(options.tls_cert_file, options.tls_private_key_file, options.cert_dir)
    now: Callable[[], float] = asyncio.get_running_loop().time
    least = MIN_VERSIONS[options.tls_min_version or "VersionTLS12"]
    tls = ServingTls(source, lambda: authorities.all(now()), now, LOG.warning, least)
    return EndpointAccess(control, tls, tuple(clients))

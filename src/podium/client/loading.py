"""Loads an `Access` from kubeconfig files and environment variables, or says in one sentence what is wrong with them.

Everything that can be checked without asking the server or running a command is checked here, once, when Podium starts.
Which of several fields counts, and what may not stand together, is as kubectl has it: embedded data wins over a file,
a token file over a token, and `exec` is not run where another credential is given. Over plain http none are sent.
"""

import os
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import quote

from yarl import URL

from podium.client.access import Access, Route, Trust
from podium.client.api_errors import AccessError
from podium.client.credentials import FileCredentials, FixedCredentials, Identity, RotatedFile, basic, bearer
from podium.client.exec_plugin import (
    ALWAYS,
    EXTENSION,
    IF_AVAILABLE,
    NEVER,
    VERSIONS,
    ExecCommand,
    ExecCredentials,
    cluster_info,
)
from podium.client.kubeconfig import EntryLocation, ExecConfig, KubeconfigCluster, KubeconfigUser, select

_HEADER_KEY = "!#$&'*+-.^_`|~"
"""What may stand in a header's name other than letters and digits."""
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SCHEMES = ("http", "https")


def load_access(
    kubeconfig: str | None = None,
    *,
    context: str | None = None,
    master: str | None = None,
    any_certificate: bool = False,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The access that `kubeconfig` gives; without it, the files of $KUBECONFIG, or ~/.kube/config, or a pod's service
    account. `context` is one of the kubeconfig's, `master` a server to ask instead of the one named there, which may
    show `any_certificate`."""
    if kubeconfig is not None:
        return _from_kubeconfig([Path(kubeconfig)], context, master, any_certificate)
    listed = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    if listed:
        existing = [file for file in listed if file.exists()]
        if not existing:
            raise AccessError(f"$KUBECONFIG names {', '.join(map(str, listed))}, which does not exist")
        return _from_kubeconfig(existing, context, master, any_certificate)
    usual = Path(os.path.expanduser("~/.kube/config"))  # noqa: PTH111  Path's raises for a user without a home
    if usual.exists():
        return _from_kubeconfig([usual], context, master, any_certificate)
    if server := server_of_environment(os.environ):
        return _from_service_account(master or server, service_account, any_certificate)
    if master:
        url = _server_url(master, "https", EntryLocation(Path("--master")))
        trust = Trust(insecure=any_certificate)
        return Access(str(url), trust=trust, route=Route(proxy=proxy_from_environment(url, os.environ)))
    raise AccessError(
        f"no cluster was named: give --kubeconfig FILE, set $KUBECONFIG, or write {usual}; "
        "inside a pod, the service account's token must be mounted"
    )


def _from_service_account(server: str, folder: Path, any_certificate: bool) -> Access:
    url = _server_url(server, "https", EntryLocation(folder))
    token = folder / "token"
    if not token.exists():
        raise AccessError(f"{token} is missing: set automountServiceAccountToken: true for this pod")
    credentials = FileCredentials(Identity(origin="the service account"), token=RotatedFile(token))
    access = Access(
        server,
        trust=Trust(insecure=True)
        if any_certificate
        else Trust(file=RotatedFile(folder / "ca.crt"), origin="the service account: ca.crt"),
        credentials=credentials,
        namespace=pod_namespace(os.environ, folder),
        route=Route(proxy=proxy_from_environment(url, os.environ)),
    )
    access.adopt(credentials.read(0.0))
    return access


def _from_kubeconfig(files: list[Path], name: str | None, master: str | None, any_certificate: bool) -> Access:
    context, cluster, cluster_location, user, user_location = select(files, name)
    secured = bool(cluster.certificate_authority or cluster.certificate_authority_data or user.client_certificate)
    scheme = "https" if secured or cluster.insecure_skip_tls_verify or user.client_certificate_data else "http"
    url = (
        _server_url(master, scheme, EntryLocation(Path("--master")))
        if master
        else _server_of(cluster, scheme, cluster_location)
    )
    proxy = _proxy(cluster, cluster_location) or proxy_from_environment(url, os.environ)
    trust = Trust(insecure=True) if any_certificate else _trust(cluster, cluster_location)
    credentials: FixedCredentials | FileCredentials | ExecCredentials
    if url.scheme == "http":
        credentials = FixedCredentials(Identity())
    elif user.exec is not None and not _has_own_credentials(user):
        credentials = _exec_credentials(user.exec, user_location, cluster, trust, str(url), proxy)
    else:
        credentials = _credentials(user, user_location)
    access = Access(
        str(url),
        trust=trust,
        credentials=credentials,
        impersonation=_impersonation(user, user_location),
        namespace=context.namespace or "default",
        route=Route(
            proxy=proxy,
            tls_server_name=None if master else cluster.tls_server_name or None,
            compression=not cluster.disable_compression,
        ),
    )
    access.adopt(Identity() if isinstance(credentials, ExecCredentials) else credentials.read(0.0))
    return access


def _server_of(cluster: KubeconfigCluster, scheme: str, location: EntryLocation) -> URL:
    if not cluster.server:
        raise location.error("server is missing: write https://HOST:6443")
    return _server_url(cluster.server, scheme, location)


def _server_url(server: str, scheme: str, location: EntryLocation) -> URL:
    try:
        url = URL(server if "://" in server else f"{scheme}://{server}")
        port = url.port
    except ValueError:
        port = None
    if port is None or url.scheme not in ("http", "https") or not url.host:
        raise location.error(f"server {server!r} is no address: write https://HOST:6443")
    if url.user or url.password:
        raise location.error("server holds a name or password: write them as username and password of the user")
    return url.with_query(None).with_fragment(None)


def _proxy(cluster: KubeconfigCluster, location: EntryLocation) -> str | None:
    if not cluster.proxy_url:
        return None
    try:
        url = URL(cluster.proxy_url)
        usable = url.scheme in SCHEMES and bool(url.host)
    except ValueError:
        usable = False
    if not usable:  # not quoted: it may hold a password
        raise location.error(
            "proxy-url is not usable: write http://HOST:PORT or https://HOST:PORT (SOCKS is not supported)"
        )
    return cluster.proxy_url


def _trust(cluster: KubeconfigCluster, location: EntryLocation) -> Trust:
    file, data = cluster.certificate_authority, cluster.certificate_authority_data
    if cluster.insecure_skip_tls_verify and (file or data):
        raise location.error("insecure-skip-tls-verify and certificate-authority exclude each other: remove one")
    if data:
        content = location.decoded("certificate-authority-data", data)
        return Trust(content=content, origin=f"{location}: certificate-authority-data")
    rotated = RotatedFile(location.path(file)) if file else None
    return Trust(file=rotated, insecure=cluster.insecure_skip_tls_verify, origin=f"{location}: certificate-authority")


def _has_own_credentials(user: KubeconfigUser) -> bool:
    certificate = user.client_certificate or user.client_certificate_data
    return bool(user.auth_provider or user.token or user.token_file or user.username or user.password or certificate)


def _credentials(user: KubeconfigUser, location: EntryLocation) -> FixedCredentials | FileCredentials:
    if user.auth_provider is not None:
        raise location.error(
            f"auth-provider {user.auth_provider.name!r} is not supported: use exec with the credential plugin"
        )
    if user.token and (user.username or user.password):
        raise location.error("token and username exclude each other: remove one")
    fields = ("client-certificate-data", "client-certificate", "client-key-data", "client-key")
    certificate_data, certificate_file, key_data, key_file = (
        user.client_certificate_data,
        user.client_certificate,
        user.client_key_data,
        user.client_key,
    )
    if bool(certificate_data or certificate_file) != bool(key_data or key_file):
        missing = fields[2:] if certificate_data or certificate_file else fields[:2]
        raise location.error(f"{missing[1]} is missing: a certificate needs its key; write {' or '.join(missing)}")
    authorization = None
    if user.token:
        authorization = bearer(user.token)
    elif user.username or user.password:
        authorization = basic(user.username, user.password)
    fixed = Identity(
        authorization,
        location.decoded(fields[0], certificate_data) if certificate_data else None,
        location.decoded(fields[2], key_data) if key_data else None,
        str(location),
    )
    token = RotatedFile(location.path(user.token_file)) if user.token_file else None
    certificate = RotatedFile(location.path(certificate_file)) if certificate_file and not certificate_data else None
    key = RotatedFile(location.path(key_file)) if key_file and not key_data else None
    if token is not None or certificate is not None or key is not None:
        return FileCredentials(fixed, token=token, certificate=certificate, key=key)
    return FixedCredentials(fixed)


def _exec_credentials(
    plugin: ExecConfig,
    location: EntryLocation,
    cluster: KubeconfigCluster,
    trust: Trust,
    server: str,
    proxy: str | None,
) -> ExecCredentials:
    if not plugin.command:
        raise location.error("exec.command is missing: name the program that prints the credentials")
    if plugin.api_version not in VERSIONS:
        raise location.error(f"exec.apiVersion {plugin.api_version!r} is not supported: write {' or '.join(VERSIONS)}")
    mode = plugin.interactive_mode or (IF_AVAILABLE if plugin.api_version != VERSIONS[0] else "")
    if mode not in (NEVER, IF_AVAILABLE, ALWAYS):
        raise location.error(f"exec.interactiveMode must be {NEVER}, {IF_AVAILABLE} or {ALWAYS}")
    if any(not variable.name for variable in plugin.env):
        raise location.error("exec.env has an entry without a name")
    info = None
    if plugin.provide_cluster_info:
        info = cluster_info(
            server,
            tls_server_name=cluster.tls_server_name,
            insecure=cluster.insecure_skip_tls_verify,
            authority=trust.read(0.0),
            proxy=proxy or "",
            disable_compression=cluster.disable_compression,
            config=next((each.extension for each in cluster.extensions if each.name == EXTENSION), None),
        )
    command = str(location.path(plugin.command)) if os.sep in plugin.command else plugin.command
    return ExecCredentials(
        ExecCommand(
            command,
            plugin.args,
            api_version=plugin.api_version,
            environment={variable.name: variable.value for variable in plugin.env},
            interactive_mode=mode,
            install_hint=plugin.install_hint,
        ),
        origin=str(location),
        cluster=info,
    )


def _impersonation(user: KubeconfigUser, location: EntryLocation) -> list[tuple[str, str]]:
    if not user.as_:
        if user.as_uid or user.as_groups or user.as_user_extra:
            raise location.error("as-uid, as-groups and as-user-extra need a user to act as: write as")
        return []
    extra = [value for values in user.as_user_extra.values() for value in values]
    if not all(value.isprintable() for value in (user.as_, user.as_uid, *user.as_groups, *extra)):
        raise location.error("as, as-uid, as-groups and as-user-extra may have no line breaks inside")
    headers = [("Impersonate-User", user.as_)]
    if user.as_uid:
        headers.append(("Impersonate-Uid", user.as_uid))
    headers += [("Impersonate-Group", group) for group in user.as_groups]
    for key, values in user.as_user_extra.items():
        headers += [(f"Impersonate-Extra-{quote(key, safe=_HEADER_KEY)}", value) for value in values]
    return headers


def server_of_environment(environment: Mapping[str, str]) -> str | None:
    """The API server's address, where this runs in a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        return None
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def pod_namespace(environment: Mapping[str, str], folder: Path) -> str:
    """The namespace of this pod: $POD_NAMESPACE, or that of its service account."""
    if named := environment.get("POD_NAMESPACE"):
        return named
    try:
        return (folder / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"


def proxy_from_environment(server: URL, environment: Mapping[str, str]) -> str | None:
    """The proxy for requests to `server`, as a URL.

    Finds the proxy that the environment names for a server, by Go's rules.

    `HTTPS_PROXY` counts for https servers and `HTTP_PROXY` for http ones, in capitals or not. `NO_PROXY` is a list
    of exceptions: `*`, an address, a network (10.0.0.0/8), a domain with its subdomains (example.com) or the
    subdomains only (.example.com), each with or without a port. The own machine is never asked for through a proxy
    of the environment.
    """
    name = f"{server.scheme}_proxy"
    proxy = environment.get(name.upper()) or environment.get(name)
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not proxy or _is_loopback(server.host or "") or _is_excepted(server, exceptions):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_excepted(server: URL, exceptions: str) -> bool:
    return any(_matches(server, entry.strip().lower()) for entry in exceptions.split(",") if entry.strip())


def _matches(server: URL, entry: str) -> bool:
    host = (server.host or "").lower()
    if entry == "*":
        return True
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:  # one of the two is a name, or the entry has a port
        pass
    name, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and not name.endswith(":"):
        if int(port) != server.port:
            return False
        entry = name.strip("[]")
    if entry.startswith("*."):
        entry = entry[1:]
    if entry.startswith("."):
        return host.endswith(entry)
    return host == entry or host.endswith(f".{entry}")

"""How to reach an API server and as whom: from a kubeconfig, or from the files every pod has in a cluster."""

import base64
import os
import ssl
import tempfile
from pathlib import Path
from typing import Any

import yaml

from podium.client.errors import AccessError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Access:
    """A server, and what proves who is asking."""

    def __init__(
        self,
        server: str,
        *,
        ssl_context: ssl.SSLContext | None = None,
        token: str | None = None,
        namespace: str = "default",
    ) -> None:
        self.server = server.rstrip("/")
        self.namespace = namespace
        self.ssl = ssl_context
        self.headers: dict[str, str] = {"Authorization": f"Bearer {token}"} if token else {}

    def __repr__(self) -> str:
        return f"Access({self.server!r})"


def load_access(kubeconfig: str | None = None, *, context: str | None = None, master: str | None = None) -> Access:
    """Reads `kubeconfig`; or else the files of $KUBECONFIG; or ~/.kube/config; or what a pod is given."""
    if kubeconfig is not None:
        return _from_file(Path(kubeconfig), context, master)
    listed = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    if listed:
        return _from_file(listed[0], context, master)
    default = Path.home() / ".kube" / "config"
    if default.exists():
        return _from_file(default, context, master)
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if host and port:
        return _in_cluster(host, port, master)
    if master:
        return Access(master)
    raise AccessError("there is no kubeconfig: give --kubeconfig FILE or set KUBECONFIG")


def _in_cluster(host: str, port: str, master: str | None) -> Access:
    try:
        token = (SERVICE_ACCOUNT / "token").read_text().strip()
        namespace = (SERVICE_ACCOUNT / "namespace").read_text().strip()
        context = ssl.create_default_context(cafile=str(SERVICE_ACCOUNT / "ca.crt"))
    except OSError as error:
        raise AccessError(f"the pod's service account cannot be read: {error}") from None
    host = f"[{host}]" if ":" in host else host
    return Access(master or f"https://{host}:{port}", ssl_context=context, token=token, namespace=namespace)


def _from_file(path: Path, context_name: str | None, master: str | None) -> Access:
    try:
        content: dict[str, Any] = yaml.safe_load(path.read_text()) or {}
    except OSError as error:
        raise AccessError(f"{path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise AccessError(f"{path} is not YAML: {error}") from None
    name = context_name or content.get("current-context") or ""
    context = _named(path, content, "contexts", "context", name)
    cluster = _named(path, content, "clusters", "cluster", context.get("cluster", ""))
    user = _named(path, content, "users", "user", context["user"]) if context.get("user") else {}
    token = user.get("token")
    if token is None and "tokenFile" in user:
        token = (path.parent / user["tokenFile"]).read_text().strip()
    server = master or cluster.get("server", "")
    tls = _ssl_context(path.parent, cluster, user) if server.startswith("https://") else None
    return Access(server, ssl_context=tls, token=token, namespace=context.get("namespace") or "default")


def _named(path: Path, content: dict[str, Any], section: str, kind: str, name: str) -> dict[str, Any]:
    for entry in content.get(section) or []:
        if entry.get("name") == name:
            return entry.get(kind) or {}
    raise AccessError(f"{path}: there is no {kind} {name!r}")


def _ssl_context(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    data = cluster.get("certificate-authority-data")
    authority = cluster.get("certificate-authority")
    try:
        context = ssl.create_default_context(
            cafile=str(folder / authority) if authority and not data else None,
            cadata=base64.b64decode(data).decode() if data else None,
        )
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        with tempfile.TemporaryDirectory() as scratch:
            certificate = _file(folder, user, "client-certificate", Path(scratch))
            key = _file(folder, user, "client-key", Path(scratch))
            if certificate is not None and key is not None:
                context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        raise AccessError(f"the certificates cannot be used: {error}") from None
    return context


def _file(folder: Path, user: dict[str, Any], field: str, scratch: Path) -> Path | None:
    if data := user.get(f"{field}-data"):
        path = scratch / field
        path.touch(mode=0o600)
        path.write_bytes(base64.b64decode(data))
        return path
    return folder / user[field] if user.get(field) else None

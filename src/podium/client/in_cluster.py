"""Finds the API server and the namespace from inside a pod."""

from collections.abc import Mapping
from pathlib import Path

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


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

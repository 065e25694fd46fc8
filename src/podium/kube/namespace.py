"""Types the namespace; affinity terms select namespaces by their labels."""

from podium.kube.meta import ClusterObject, Model


class NamespaceStatus(Model, frozen=True, kw_only=True):
    phase: str = ""


class Namespace(ClusterObject, frozen=True, kw_only=True):
    status: NamespaceStatus = NamespaceStatus()

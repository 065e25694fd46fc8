"""Holds objects that only plugins read, as they were written: nothing but their metadata is typed.

They are custom resources, and those kinds of the core group that scheduling itself does not depend on.
"""

from typing import Any, Final

import msgspec

from podium.kube.json_object import JsonObject
from podium.kube.meta import NamespacedObject

CORE_KINDS: Final = {
    ("v1", "ConfigMap"): "configmaps",
    ("v1", "LimitRange"): "limitranges",
    ("v1", "ResourceQuota"): "resourcequotas",
}
"""The kinds of the core group that plugins may read, and what they call them."""

CUSTOM_KINDS: Final = {
    **CORE_KINDS,
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"): "podgroups.scheduling.x-k8s.io",
    ("scheduling.x-k8s.io/v1alpha1", "ElasticQuota"): "elasticquotas.scheduling.x-k8s.io",
    ("appgroup.diktyo.x-k8s.io/v1alpha1", "AppGroup"): "appgroups.appgroup.diktyo.x-k8s.io",
    ("networktopology.diktyo.x-k8s.io/v1alpha1", "NetworkTopology"): (
        "networktopologies.networktopology.diktyo.x-k8s.io"
    ),
    ("security-profiles-operator.x-k8s.io/v1beta1", "SeccompProfile"): (
        "seccompprofiles.security-profiles-operator.x-k8s.io"
    ),
    ("topology.node.k8s.io/v1alpha2", "NodeResourceTopology"): "noderesourcetopologies.topology.node.k8s.io",
}
"""The kinds that are read from files for plugins alone, and what plugins call them."""

CLUSTER_SCOPED: Final = frozenset({"NodeResourceTopology"})
"""Those of them that belong to the whole cluster."""

POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""The label by which a pod belongs to the PodGroup of its namespace with that name."""


class CustomObject(NamespacedObject, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)
    config: dict[str, str] = msgspec.field(default_factory=dict, name="data")
    """What a ConfigMap has in place of a spec."""
    binary_data: dict[str, str] = msgspec.field(default_factory=dict)
    zones: Any = None
    """With the two below: what a NodeResourceTopology has in place of a spec."""
    attributes: Any = None
    topology_policies: Any = None

    @property
    def key(self) -> str:
        return self.metadata.name if self.kind in CLUSTER_SCOPED else super().key

    @property
    def resource(self) -> str:
        """The "plural.group" that plugins go by."""
        return CUSTOM_KINDS[self.api_version, self.kind]

    @property
    def data(self) -> JsonObject:
        """The object as plugins get it: as the API writes it."""
        written: JsonObject = msgspec.to_builtins(self)
        return written


class ThirdPartyObject(CustomObject, frozen=True, kw_only=True):
    """An object of a kind that is known to a plugin from elsewhere, whole as the API server gave it."""

    plural_group: str = ""
    whole: JsonObject = msgspec.field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.name}" if self.metadata.namespace else self.name

    @property
    def resource(self) -> str:
        return self.plural_group

    @property
    def data(self) -> JsonObject:
        return self.whole

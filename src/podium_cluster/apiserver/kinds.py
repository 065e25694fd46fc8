"""Lists the kinds that the API serves: where each is stored, what may be done with it, and which come and go with CRDs.

The built-in ones are a table, in the order kube-apiserver lists groups and resources. Several kinds may share one place
in the store: `events` of the core group and of events.k8s.io are one collection in two forms, and so are the versions
of a custom resource.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import Final
from urllib.parse import quote

import msgspec

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
ONLY_CREATE: Final = ("create",)
PART_VERBS: Final = ("get", "patch", "update")


class Subresource(msgspec.Struct, frozen=True):
    """A part of an object with a path of its own; `kind` is of what is read and written there, "" for the object's."""

    name: str
    kind: str = ""
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = PART_VERBS


class Kind(msgspec.Struct, frozen=True, dict=True, cache_hash=True):
    """One kind in one version. `collection` names its place in the store where that is not its own."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    parts: tuple[Subresource, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    collection: str = ""
    custom: bool = False
    inert: bool = False
    """Whether nothing in an embedded cluster acts on it: it is stored, and that is all."""

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        """As messages name the resource: "pods", "deployments.apps"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def qualified_kind(self) -> str:
        """As messages name the kind: "Pod", "Deployment.apps"."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @cached_property
    def stored_in(self) -> str:
        return self.collection or self.qualified

    @cached_property
    def subresources(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts)

    @cached_property
    def has_status(self) -> bool:
        """Whether its status is written through a path of its own, and only there."""
        return "status" in self.subresources

    @cached_property
    def head(self) -> bytes:
        """What every encoded object of the kind begins with."""
        return msgspec.json.encode({"kind": self.kind, "apiVersion": self.api_version})[:-1] + b","

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
        """The URL path of the collection, of one object, or of a part of it."""
        steps = ["/apis" if self.group else "/api", self.api_version]
        if self.namespaced and namespace:
            steps += ["namespaces", quote(namespace, safe="")]
        steps.append(self.plural)
        if name is not None:
            steps.append(quote(name, safe=""))
        if subresource:
            steps.append(subresource)
        return "/".join(steps)

    def part(self, name: str) -> Subresource | None:
        for part in self.parts:
            if part.name == name:
                return part
        return None


class Kinds:
    """The kinds served now. Built-in ones stay; custom ones are replaced and removed by group and plural."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._by_path: dict[tuple[str, str, str], Kind] = {}
        self._by_kind: dict[tuple[str, str], Kind] = {}
        self.generation = 0
        """Changes whenever a kind comes or goes, so that what is made from all of them can be kept until then."""
        for kind in kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_path.values())

    def add(self, kind: Kind) -> None:
        self.generation += 1
        self._by_path[kind.group, kind.version, kind.plural] = kind
        self._by_kind[kind.api_version, kind.kind] = kind

    def remove(self, kind: Kind) -> None:
        self.generation += 1
        self._by_path.pop((kind.group, kind.version, kind.plural), None)
        self._by_kind.pop((kind.api_version, kind.kind), None)

    def by_path(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_path.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        return self._by_kind.get((api_version, kind))


STATUS: Final = Subresource("status")
SCALE: Final = Subresource("scale", "Scale", "autoscaling", "v1")
_POD_PARTS: Final = (
    Subresource("binding", "Binding", verbs=ONLY_CREATE),
    Subresource("eviction", "Eviction", "policy", "v1", verbs=ONLY_CREATE),
    Subresource("resize"),
    STATUS,
)


def _kind(
    where: str,
    names: str,
    *parts: Subresource,
    short: str = "",
    categories: str = "",
    cluster: bool = False,
    verbs: tuple[str, ...] = ALL_VERBS,
    collection: str = "",
    inert: bool = False,
) -> Kind:
    group, _, version = where.rpartition("/")
    kind, plural = names.split()
    return Kind(
        group,
        version,
        kind,
        plural,
        kind.lower(),
        not cluster,
        tuple(short.split()),
        tuple(categories.split()),
        parts,
        verbs,
        collection,
        inert=inert,
    )


_inert = partial(_kind, inert=True)

_WITHOUT_COLLECTION_DELETE: Final = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")

BUILT_IN: Final[tuple[Kind, ...]] = (
    _kind("v1", "Binding bindings", verbs=ONLY_CREATE),
    _kind("v1", "ConfigMap configmaps", short="cm"),
    _kind("v1", "Endpoints endpoints", short="ep"),
    _kind("v1", "Event events", short="ev"),
    _kind("v1", "LimitRange limitranges", short="limits"),
    _kind(
        "v1",
        "Namespace namespaces",
        Subresource("finalize", verbs=("update",)),
        STATUS,
        short="ns",
        cluster=True,
        verbs=_WITHOUT_COLLECTION_DELETE,
    ),
    _kind("v1", "Node nodes", STATUS, short="no", cluster=True),
    _kind("v1", "PersistentVolumeClaim persistentvolumeclaims", STATUS, short="pvc"),
    _kind("v1", "PersistentVolume persistentvolumes", STATUS, short="pv", cluster=True),
    _inert("v1", "PodTemplate podtemplates"),
    _kind("v1", "Pod pods", *_POD_PARTS, short="po", categories="all"),
    _kind("v1", "ReplicationController replicationcontrollers", SCALE, STATUS, short="rc", categories="all"),
    _kind("v1", "ResourceQuota resourcequotas", STATUS, short="quota"),
    _kind("v1", "Secret secrets"),
    _kind("v1", "ServiceAccount serviceaccounts", short="sa"),
    _kind("v1", "Service services", STATUS, short="svc", categories="all"),
    _kind("apps/v1", "ControllerRevision controllerrevisions"),
    _kind("apps/v1", "DaemonSet daemonsets", STATUS, short="ds", categories="all"),
    _kind("apps/v1", "Deployment deployments", SCALE, STATUS, short="deploy", categories="all"),
    _kind("apps/v1", "ReplicaSet replicasets", SCALE, STATUS, short="rs", categories="all"),
    _kind("apps/v1", "StatefulSet statefulsets", SCALE, STATUS, short="sts", categories="all"),
    _kind("events.k8s.io/v1", "Event events", short="ev", collection="events"),
    _kind("authentication.k8s.io/v1", "SelfSubjectReview selfsubjectreviews", cluster=True, verbs=ONLY_CREATE),
    _kind("authentication.k8s.io/v1", "TokenReview tokenreviews", cluster=True, verbs=ONLY_CREATE),
    _kind("authorization.k8s.io/v1", "LocalSubjectAccessReview localsubjectaccessreviews", verbs=ONLY_CREATE),
    _kind(
        "authorization.k8s.io/v1", "SelfSubjectAccessReview selfsubjectaccessreviews", cluster=True, verbs=ONLY_CREATE
    ),
    _kind("authorization.k8s.io/v1", "SelfSubjectRulesReview selfsubjectrulesreviews", cluster=True, verbs=ONLY_CREATE),
    _kind("authorization.k8s.io/v1", "SubjectAccessReview subjectaccessreviews", cluster=True, verbs=ONLY_CREATE),
    _inert(
        "autoscaling/v2",
        "HorizontalPodAutoscaler horizontalpodautoscalers",
        STATUS,
        short="hpa",
        categories="all",
    ),
    _inert("batch/v1", "CronJob cronjobs", STATUS, short="cj", categories="all"),
    _kind("batch/v1", "Job jobs", STATUS, categories="all"),
    _inert("networking.k8s.io/v1", "IngressClass ingressclasses", cluster=True),
    _inert("networking.k8s.io/v1", "Ingress ingresses", STATUS, short="ing"),
    _inert("networking.k8s.io/v1", "NetworkPolicy networkpolicies", short="netpol"),
    _kind("policy/v1", "PodDisruptionBudget poddisruptionbudgets", STATUS, short="pdb"),
    _kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding clusterrolebindings", cluster=True),
    _kind("rbac.authorization.k8s.io/v1", "ClusterRole clusterroles", cluster=True),
    _kind("rbac.authorization.k8s.io/v1", "RoleBinding rolebindings"),
    _kind("rbac.authorization.k8s.io/v1", "Role roles"),
    _kind("storage.k8s.io/v1", "CSIDriver csidrivers", cluster=True),
    _kind("storage.k8s.io/v1", "CSINode csinodes", cluster=True),
    _kind("storage.k8s.io/v1", "CSIStorageCapacity csistoragecapacities"),
    _kind("storage.k8s.io/v1", "StorageClass storageclasses", short="sc", cluster=True),
    _kind("storage.k8s.io/v1", "VolumeAttachment volumeattachments", STATUS, cluster=True),
    _kind("storage.k8s.io/v1", "VolumeAttributesClass volumeattributesclasses", short="vac", cluster=True),
    *(
        _inert("admissionregistration.k8s.io/v1", names, *parts, categories="api-extensions", cluster=True)
        for names, *parts in (
            ("MutatingAdmissionPolicy mutatingadmissionpolicies",),
            ("MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings",),
            ("MutatingWebhookConfiguration mutatingwebhookconfigurations",),
            ("ValidatingAdmissionPolicy validatingadmissionpolicies", STATUS),
            ("ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings",),
            ("ValidatingWebhookConfiguration validatingwebhookconfigurations",),
        )
    ),
    _kind(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition customresourcedefinitions",
        STATUS,
        short="crd crds",
        categories="api-extensions",
        cluster=True,
    ),
    _kind("scheduling.k8s.io/v1", "PriorityClass priorityclasses", short="pc", cluster=True),
    _kind("coordination.k8s.io/v1", "Lease leases"),
    _kind("node.k8s.io/v1", "RuntimeClass runtimeclasses", cluster=True),
    _kind("discovery.k8s.io/v1", "EndpointSlice endpointslices"),
    _kind("resource.k8s.io/v1", "DeviceClass deviceclasses", cluster=True),
    _kind("resource.k8s.io/v1", "ResourceClaim resourceclaims", STATUS),
    _kind("resource.k8s.io/v1", "ResourceClaimTemplate resourceclaimtemplates"),
    _kind("resource.k8s.io/v1", "ResourceSlice resourceslices", cluster=True),
)

WORKLOAD_KINDS: Final[tuple[Kind, ...]] = (
    _kind("scheduling.k8s.io/v1alpha2", "PodGroup podgroups", STATUS),
    _kind("scheduling.k8s.io/v1alpha2", "Workload workloads"),
)
"""Served while the gate GenericWorkload is on."""

_INDEX: Final = Kinds((*BUILT_IN, *WORKLOAD_KINDS))


def built_in(api_version: str, kind: str) -> Kind:
    """The built-in kind of that name: `built_in("apps/v1", "Deployment")`."""
    found = _INDEX.by_kind(api_version, kind)
    if found is None:
        raise KeyError(f"{api_version} {kind} is not a built-in kind")
    return found


POD: Final = built_in("v1", "Pod")
NODE: Final = built_in("v1", "Node")
NAMESPACE: Final = built_in("v1", "Namespace")
EVENT: Final = built_in("v1", "Event")

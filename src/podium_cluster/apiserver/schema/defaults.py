"""Fills in the defaults of built-in kinds: `restartPolicy: Always`, `replicas: 1`.

Defaults belong to types, wherever those occur: a probe's period is ten seconds in a pod and in a deployment's template.
So there is a table of constants by type, a table of rules for what depends on other fields (default_rules.py), and what
the types themselves declare; for each kind the few places that matter are worked out once. A type's own defaults come
before those of what it contains.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any, Final

from podium_cluster.apiserver.schema.default_rules import RULES, round_up
from podium_cluster.apiserver.schema.fields import FieldType, Struct, struct_named, type_names

Fill = Callable[[dict[str, Any]], None]

_FILE_MODE: Final = {"defaultMode": 0o644}
CONSTANTS: Final[dict[str, dict[str, Any]]] = {
    "core.v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    "core.v1.Container": {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    "core.v1.EphemeralContainer": {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    "core.v1.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core.v1.SecretVolumeSource": _FILE_MODE,
    "core.v1.ConfigMapVolumeSource": _FILE_MODE,
    "core.v1.DownwardAPIVolumeSource": _FILE_MODE,
    "core.v1.ProjectedVolumeSource": _FILE_MODE,
    "core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core.v1.HostPathVolumeSource": {"type": ""},
    "core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core.v1.Secret": {"type": "Opaque"},
    "core.v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeStatus": {"phase": "Pending"},
    "core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core.v1.NamespaceStatus": {"phase": "Active"},
    "core.v1.EndpointPort": {"protocol": "TCP"},
    "apps.v1.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "apps.v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps.v1.ReplicaSetSpec": {"replicas": 1},
    "apps.v1.StatefulSetSpec": {
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {},
    },
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "batch.v1.JobSpec": {"completionMode": "NonIndexed", "suspend": False, "manualSelector": False},
    "batch.v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "storage.v1.CSIDriverSpec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    },
    "resource.v1.ExactDeviceRequest": {"allocationMode": "ExactCount"},
    "resource.v1.DeviceSubRequest": {"allocationMode": "ExactCount"},
    "apiextensions.v1.CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
    "apiextensions.v1.ServiceReference": {"port": 443},
}


def defaults_of(group: str, version: str, kind: str) -> Fill:
    """The function that fills in what an object of the kind leaves out, in place."""
    struct = struct_named(type_names()[group, version, kind])
    assert struct is not None
    return _fill_of(struct, ()) or _nothing


def _nothing(_: dict[str, Any]) -> None:
    return None


@cache
def _fill_of(struct: Struct, above: tuple[Struct, ...]) -> Fill | None:
    """What fills in a value of this type, or None when there is nothing to do in it, however deep."""
    if struct in above:  # a type that contains itself: schemas do, and they have no defaults
        return None
    known = CONSTANTS.get(_short(struct), {})
    constants = {**_declared(struct), **{name: value for name, value in known.items() if not _mutable(value)}}
    copied = {name: value for name, value in known.items() if _mutable(value)}
    rule = RULES.get(_short(struct))
    nulls = [name for name, field in struct.fields.items() if field.null_when_absent]
    inner: dict[str, tuple[str, Fill]] = {}
    for name, field in struct.fields.items():
        if field.go_type == "v1.ResourceList":
            inner[name] = "struct", round_up
        elif (within := _fill_of_field(field, (*above, struct))) is not None:
            inner[name] = field.form, within
    if not constants and not copied and rule is None and not inner and not nulls:
        return None

    def fill(value: dict[str, Any]) -> None:
        for name, default in constants.items():
            if value.get(name) in ("", None):  # decoding writes some strings that were not given
                value[name] = default
        for name, default in copied.items():
            if name not in value:
                value[name] = deepcopy(default)
        if rule is not None:
            rule(value)
        for name, found in value.items():
            if name in inner and found is not None:
                form, fill_inner = inner[name]
                if form == "struct":
                    fill_inner(found)
                else:
                    for each in found if form == "list" else found.values():
                        fill_inner(each)
        for name in nulls:
            value.setdefault(name, None)

    return fill


def _fill_of_field(field: FieldType, above: tuple[Struct, ...]) -> Fill | None:
    inner = field.element if field.form in ("list", "map") else field
    return _fill_of(inner.struct, above) if inner is not None and inner.struct is not None else None


def _declared(struct: Struct) -> dict[str, Any]:
    """The defaults that the type itself declares, except those that decoding writes anyway."""
    return {
        name: field.default
        for name, field in struct.fields.items()
        if field.default is not None and not field.always and (field.default or not field.omit_zero)
    }


def _mutable(value: object) -> bool:
    return isinstance(value, dict | list)


def _short(struct: Struct) -> str:
    """ "core.v1.Pod" of "io.k8s.api.core.v1.Pod"."""
    return ".".join(struct.type_name.split(".")[-3:])

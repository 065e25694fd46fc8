"""Runs the cluster around the schedulers: pods come and go, nodes run what is bound to them, some nodes fail.

Everything is done on the API in process, at moments drawn from the seed. A pod bound to a node starts within a second;
one with a lifetime ends after it; one that is being deleted is gone soon after; pods of a node that is gone are
removed, as the garbage collector of a real cluster does.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import Context
from typing import Any

import msgspec

from podium.controllers.catalog import definitions
from podium.kube import Pod
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.store.collection import ObjectChange, Stored
from podium_cluster.controllers.volumes import PROVISIONER
from podium_cluster.kubelets import DeviceShape
from podium_cluster.kubelets.pod_life import problem_of_claims
from podium_cluster.kubelets.shapes import publish
from tools.chaos.transcript import Transcript
from tools.chaos.workloads import FIXED, LASTS, MADE, PRIORITIES, RETURNS, Arrival, claim_of, device_claims

ORPHANED = 8.0
"""Seconds after which the pods of a vanished node are removed."""


class Machines:
    """The nodes and pods of a run, as kubelets and users would treat them."""

    def __init__(self, api: EmbeddedApi, rng: random.Random, transcript: Transcript) -> None:
        self._api = api
        self._rng = rng
        self._transcript = transcript
        self.pods = kind_of(api, "v1", "Pod")
        self.nodes = kind_of(api, "v1", "Node")
        self._devices: dict[str, int] = {}  # by node
        self._known: set[tuple[str, str]] = set()  # (uid, what is on its way to happen to it)
        api.store.listen(self._pod_changed, self.pods)

    # What comes at the beginning

    def build(self, nodes: list[JsonObject], volumes: list[JsonObject]) -> None:
        storage_classes = kind_of(self._api, "storage.k8s.io/v1", "StorageClass")
        for name, provisioner in ((FIXED, "kubernetes.io/no-provisioner"), (MADE, PROVISIONER)):
            storage_class = {
                "metadata": {"name": name},
                "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer",
            }
            self._api.create(storage_classes, storage_class)
        for volume in volumes:
            self._api.create(kind_of(self._api, "v1", "PersistentVolume"), volume)
        classes = kind_of(self._api, "scheduling.k8s.io/v1", "PriorityClass")
        for name, value in PRIORITIES.items():
            self._api.create(classes, {"metadata": {"name": name}, "value": value})
        for node in nodes:
            self._create_node(node)

    def add_devices(self, devices: dict[str, int]) -> None:
        """Give the nodes so many devices each, and create what pods claim them with."""
        self._devices = devices
        for name in devices:
            self._publish(name)
        for each in device_claims():
            self._api.create(kind_of(self._api, each["apiVersion"], each["kind"]), each)

    def _publish(self, node: str) -> None:
        count = self._devices.get(node, 0)
        if count:
            publish(self._api, [DeviceShape(nodes=node, count=count)], [node])

    def _withdraw(self, node: str) -> None:
        """The devices of a node that is gone go with it."""
        slices = kind_of(self._api, "resource.k8s.io/v1", "ResourceSlice")
        for stored in self._api.store.items(slices):
            if stored.decode()["spec"].get("nodeName") == node:
                self._api.delete(slices, None, stored.name)

    def define_groups(self, groups: list[JsonObject]) -> None:
        """The PodGroups, which need their definition first."""
        if groups:
            self._define("podgroups")
            for group in groups:
                self._api.create(kind_of(self._api, "scheduling.x-k8s.io/v1alpha1", "PodGroup"), group)

    def define_quotas(self, quotas: list[JsonObject], edits: list[tuple[float, JsonObject]], start: float) -> None:
        """The ElasticQuotas with their namespaces and their definition, and what becomes of them later."""
        self._define("elasticquotas")
        for quota in quotas:
            self._api.create(
                kind_of(self._api, "v1", "Namespace"), {"metadata": {"name": quota["metadata"]["namespace"]}}
            )
            self._api.create(kind_of(self._api, "scheduling.x-k8s.io/v1alpha1", "ElasticQuota"), quota)
        for at, quota in edits:
            self._at(start + at, self._edit_quota, quota)

    def _edit_quota(self, quota: JsonObject) -> None:
        kind, meta = kind_of(self._api, "scheduling.x-k8s.io/v1alpha1", "ElasticQuota"), quota["metadata"]
        self._transcript.note("user", f"edits the quota of {meta['namespace']}: {quota['spec']}")
        stored = self._api.get(kind, meta["namespace"], meta["name"])
        self._api.update(kind, {**stored, "spec": quota["spec"]})

    def _define(self, plural: str) -> None:
        definition = definitions()[plural]
        self._api.create(kind_of(self._api, "apiextensions.k8s.io/v1", "CustomResourceDefinition"), definition)

    def expect(self, arrivals: list[Arrival], start: float, end: float) -> None:
        """Have the pods come, and go, between these times."""
        for arrival in arrivals:
            came = start + arrival.at
            self._at(came, self._create_pod, arrival.pod)
            if arrival.deleted_after is None or came + arrival.deleted_after >= end:
                continue
            gone = came + arrival.deleted_after
            self._at(gone, self._delete_pod, arrival.pod["metadata"]["namespace"], arrival.pod["metadata"]["name"])
            if arrival.back_after is not None:
                self._at(gone + arrival.back_after, self._recreate_pod, arrival.pod, 20)

    # Nodes that fail

    def vanish(self, seconds: float | None) -> str | None:
        """One node goes, for good or for so many seconds; its name."""
        stored = self._any_node()
        if stored is None:
            return None
        node = stored.decode()
        self._api.delete(self.nodes, None, stored.name)
        self._withdraw(stored.name)
        self._later(ORPHANED, self._remove_orphans, stored.name)
        if seconds is not None:
            self._later(seconds, self._create_node, node)
        return stored.name

    def shrink(self) -> str | None:
        """One node has half as much to give; its name."""
        stored = self._any_node()
        if stored is None:
            return None
        node = stored.decode()
        cpu = int(node["status"]["allocatable"]["cpu"])
        node["status"]["allocatable"]["cpu"] = str(max(1, cpu // 2))
        self._api.update(self.nodes, node, subresource="status")
        return stored.name

    def cordon(self, seconds: float) -> str | None:
        """One node takes no more pods for a while; its name."""
        stored = self._any_node()
        if stored is None:
            return None
        self._set_unschedulable(stored.name, True)
        self._later(seconds, self._set_unschedulable, stored.name, False)
        return stored.name

    def _any_node(self) -> Stored | None:
        nodes = self._api.store.items(self.nodes)
        return self._rng.choice(nodes) if len(nodes) > 5 else None

    def _set_unschedulable(self, name: str, unschedulable: bool) -> None:
        stored = self._api.store.get(self.nodes, None, name)
        if stored is not None:
            node = stored.decode()
            node["spec"]["unschedulable"] = unschedulable
            self._api.update(self.nodes, node)

    def _create_node(self, node: JsonObject) -> None:
        plain = {"name": node["metadata"]["name"], "labels": node["metadata"]["labels"]}
        spec = {key: value for key, value in node["spec"].items() if key == "taints"}
        self._api.create(self.nodes, {**node, "metadata": plain, "spec": spec})
        self._publish(plain["name"])

    def _remove_orphans(self, name: str) -> None:
        if self._api.store.get(self.nodes, None, name) is not None:
            return
        for stored in self._api.store.items(self.pods):
            if stored.decode()["spec"].get("nodeName") == name:
                self._remove(stored.namespace, stored.name, stored.uid)

    # Pods

    def _create_pod(self, pod: JsonObject) -> None:
        for volume in pod["spec"].get("volumes", ()):
            claim = claim_of(pod, volume["persistentVolumeClaim"]["claimName"])
            self._api.create(kind_of(self._api, "v1", "PersistentVolumeClaim"), claim)
        self._api.create(self.pods, pod)

    def _recreate_pod(self, pod: JsonObject, attempts: int) -> None:
        try:
            self._api.create(self.pods, pod)
        except StatusError as error:
            if error.reason == "AlreadyExists" and attempts:  # not gone yet
                self._later(0.5, self._recreate_pod, pod, attempts - 1)

    def _delete_pod(self, namespace: str, name: str) -> None:
        if self._api.store.get(self.pods, namespace, name) is not None:
            self._transcript.note("user", f"deletes {name}")
            self._api.delete(self.pods, namespace, name)

    def _pod_changed(self, change: ObjectChange) -> None:
        if change.type == "DELETED":
            self._transcript.note("cluster", f"{change.new.name} is gone")
            return
        pod = change.new.decode()
        uid, spec, status = change.new.uid, pod["spec"], pod.get("status", {})
        node = spec.get("nodeName")
        if change.old is None:
            self._transcript.note("cluster", f"{change.new.name} comes")
        if not node:
            return
        if (uid, "bound") not in self._known:
            self._known.add((uid, "bound"))
            self._transcript.note("cluster", f"{change.new.name} is bound to {node}")
        where = (change.new.namespace, change.new.name, uid)
        if "deletionTimestamp" in pod["metadata"]:
            if RETURNS in pod["metadata"].get("annotations", {}) and _preempted(pod):
                self._once(uid, "back", 0.5, self._recreate_pod, _as_new(pod), 20)
            self._once(uid, "removed", self._rng.uniform(0.05, 2.0), self._remove, *where)
        elif status.get("phase") == "Pending":
            self._once(uid, "started", self._rng.uniform(0.05, 1.0), self._start, *where)
            if self._api.store.get(self.nodes, None, node) is None:
                self._later(ORPHANED, self._remove_orphans, node)

    def _start(self, namespace: str, name: str, uid: str) -> None:
        pod = self._current(namespace, name, uid)
        if pod is None or self._api.store.get(self.nodes, None, pod["spec"]["nodeName"]) is None:
            return
        if pod["spec"].get("resourceClaims") and problem_of_claims(self._api, msgspec.convert(pod, Pod)):
            self._later(1.0, self._start, namespace, name, uid)
            return
        pod["status"]["phase"] = "Running"
        pod["status"]["startTime"] = self._api.context.now()
        self._api.update(self.pods, pod, subresource="status")
        lasts = pod["metadata"].get("annotations", {}).get(LASTS)
        if lasts is not None:
            self._later(float(lasts), self._end, namespace, name, uid)

    def _end(self, namespace: str, name: str, uid: str) -> None:
        pod = self._current(namespace, name, uid)
        if pod is not None:
            pod["status"]["phase"] = "Succeeded"
            self._api.update(self.pods, pod, subresource="status")

    def _remove(self, namespace: str, name: str, uid: str) -> None:
        if self._current(namespace, name, uid) is not None:
            self._api.delete(self.pods, namespace, name, grace_seconds=0)

    def _current(self, namespace: str, name: str, uid: str) -> dict[str, Any] | None:
        stored = self._api.store.get(self.pods, namespace, name)
        return None if stored is None or stored.uid != uid else stored.decode()

    # Moments

    def _once(self, uid: str, what: str, seconds: float, do: Callable[..., None], *args: Any) -> None:
        if (uid, what) not in self._known:
            self._known.add((uid, what))
            self._later(seconds, do, *args)

    def _later(self, seconds: float, do: Callable[..., None], *args: Any) -> None:
        self._at(asyncio.get_running_loop().time() + seconds, do, *args)

    def _at(self, when: float, do: Callable[..., None], *args: Any) -> None:
        asyncio.get_running_loop().call_at(when, do, *args, context=Context())


def kind_of(api: EmbeddedApi, api_version: str, name: str) -> Kind:
    kind = api.kinds.by_kind(api_version, name)
    assert kind is not None, f"the API has no {name} in {api_version}"
    return kind


def _preempted(pod: JsonObject) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "DisruptionTarget" and each["status"] == "True" for each in conditions)


def _as_new(pod: JsonObject) -> JsonObject:
    """The pod as its controller would create it again."""
    metadata = {name: pod["metadata"][name] for name in ("name", "namespace", "labels", "annotations")}
    spec = {name: value for name, value in pod["spec"].items() if name != "nodeName"}
    return {"metadata": metadata, "spec": spec}

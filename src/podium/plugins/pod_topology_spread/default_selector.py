"""Selects the pods that belong together where a pod does not say so: those of its services and its controller.

The selector is the sum of the selectors of all services that match the pod, in its namespace, and of the
ReplicationController, ReplicaSet or StatefulSet that controls it. A pod that has none of them gets an empty selector,
which means that no default constraint applies to it.

Services are filed by what they select, so that a pod finds its own among thousands; the index is built again when a
service changed.
"""

from __future__ import annotations

from podium.cluster import Objects
from podium.cluster.selector_index import AnchorIndex
from podium.kube import LabelSelector, Pod
from podium.kube.selector import EVERYTHING, Selector, SelectorError, compile_label_selector, selector_from_labels

Controllers = dict[str, str] | LabelSelector | None
"""How a controller selects its pods: a plain map (ReplicationController) or a label selector (the others)."""

Basis = tuple[int, Controllers]


class DefaultSelectors:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._services: dict[str, AnchorIndex[Selector]] = {}
        self._services_version = -1

    def basis(self, pod: Pod) -> Basis | None:
        """What the pod's selector is made from, to see whether one made earlier still holds; None: of nothing."""
        if self._services_version != self._objects.services.version:
            self._file_services()
        controller = self._controller_selector(pod)
        if controller is None and pod.namespace not in self._services:
            return None
        return self._services_version, controller

    def selector(self, pod: Pod, basis: Basis) -> Selector:
        _version, controller = basis
        labels: dict[str, str] = {}
        services = self._services.get(pod.namespace)
        if services is not None:
            for service in services.candidates(pod.labels):
                if service.matches(pod.labels):
                    labels.update((requirement.key, requirement.values[0]) for requirement in service.requirements)
        if isinstance(controller, dict):
            return selector_from_labels(labels | controller)
        try:
            chosen = EVERYTHING if controller is None else compile_label_selector(controller)
        except SelectorError:
            chosen = EVERYTHING
        return selector_from_labels(labels).and_also(chosen.requirements)

    def _controller_selector(self, pod: Pod) -> Controllers:
        if not pod.metadata.owner_references:
            return None
        owner = pod.metadata.controller
        if owner is None:
            return None
        key = f"{pod.namespace}/{owner.name}"
        match owner.api_version, owner.kind:
            case "v1", "ReplicationController":
                controller = self._objects.replication_controllers.get(key)
                return None if controller is None else controller.spec.selector
            case "apps/v1", "ReplicaSet":
                replica_set = self._objects.replica_sets.get(key)
                return None if replica_set is None else replica_set.spec.selector
            case "apps/v1", "StatefulSet":
                stateful_set = self._objects.stateful_sets.get(key)
                return None if stateful_set is None else stateful_set.spec.selector
        return None

    def _file_services(self) -> None:
        self._services = {}
        for service in self._objects.services:
            if service.spec.selector:
                selector = selector_from_labels(service.spec.selector)
                self._services.setdefault(service.namespace, AnchorIndex()).add(selector, selector)
        self._services_version = self._objects.services.version

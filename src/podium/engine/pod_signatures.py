"""Says what kube-scheduler's plugins look at of a pod, in a form that can be compared (its SignPlugin).

Pods with equal signatures of all plugins of a profile may be placed in one batch (`podium.engine.batching`). These are
facts about kube-scheduler, and not what our plugins read: volumes count without their names, and those of config maps
and secrets do not count at all. A plugin that is not in the table keeps all pods of its profile from being compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

from msgspec.msgpack import encode
from msgspec.structs import replace

from podium.framework.plugin import Plugin
from podium.kube import NodeAffinitySpec, NodeSelectorTerm, Pod
from podium.kube.requests import fit_requests
from podium.placement.devices.uses import device_uses
from podium.plugins.image_locality import with_tag
from podium.plugins.node_declared_features import required_features

SignatureOf = Callable[[Pod], Hashable]
"""Equal for pods that the plugin cannot tell apart; None: the pod cannot be compared with others."""


def signature_of(plugin: Plugin) -> SignatureOf | None:
    """How a plugin signs pods; None where it signs none, be it because of its arguments."""
    make = SIGNATURES.get(plugin.name) if plugin.trusted else None
    return None if make is None else make(plugin)


def _of_pod(sign: SignatureOf) -> Callable[[Plugin], SignatureOf]:
    """A signature that depends on the pod alone."""
    return lambda _plugin: sign


def _images(pod: Pod) -> Hashable:
    return frozenset(with_tag(each.image) for each in (*pod.spec.containers, *pod.spec.init_containers))


def _host_ports(pod: Pod) -> Hashable:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return frozenset(port.host_port for each in containers for port in each.ports if port.host_port)


def _tolerations(pod: Pod) -> Hashable:
    return encode(sorted(pod.spec.tolerations, key=lambda each: (each.key, each.value)))


def _volumes(pod: Pod) -> Hashable:
    counted = (each for each in pod.spec.volumes if each.config_map is None and each.secret is None)
    return tuple(sorted(encode(replace(each, name="")) for each in counted))


def _claims(pod: Pod) -> Hashable:
    return None if pod.spec.resource_claims else ()


def _node_terms(pod: Pod) -> Hashable:
    affinity = pod.spec.affinity
    terms = affinity and affinity.node_affinity and _of_affinity(affinity.node_affinity)
    return terms, frozenset(pod.spec.node_selector.items())


def _of_affinity(affinity: NodeAffinitySpec) -> Hashable:
    """Equal where terms and conditions differ in their order alone."""
    required = affinity.required.node_selector_terms if affinity.required else ()
    preferred = frozenset((each.weight, _of_term(each.preference)) for each in affinity.preferred)
    return frozenset(map(_of_term, required)), preferred


def _of_term(term: NodeSelectorTerm) -> Hashable:
    return tuple(
        frozenset((each.key, each.operator, frozenset(each.values)) for each in conditions)
        for conditions in (term.match_expressions, term.match_fields)
    )


def _requests(plugin: Plugin) -> SignatureOf:
    """None where a device class stands behind a resource: pods that are given devices cannot be compared."""
    devices = device_uses(plugin.handle.cluster.objects).resources

    def requests(pod: Pod) -> Hashable:
        requested = fit_requests(pod)
        if any(amount and devices.class_of(name) for name, amount in requested.items()):
            return None
        return frozenset(requested.items())

    return requests


def _pod_terms(plugin: Plugin) -> SignatureOf:
    labels_count = not plugin.args.ignore_preferred_terms_of_existing_pods

    def pod_terms(pod: Pod) -> Hashable:
        affinity = pod.spec.affinity
        if affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None):
            return None
        return frozenset(pod.labels.items()) if labels_count else ()

    return pod_terms


def _spread(plugin: Plugin) -> SignatureOf | None:
    if plugin.args.defaults:
        return None
    return lambda pod: None if pod.spec.topology_spread_constraints else ()


SIGNATURES: Final[dict[str, Callable[[Any], SignatureOf | None]]] = {
    "DynamicResources": _of_pod(_claims),
    "ImageLocality": _of_pod(_images),
    "InterPodAffinity": _pod_terms,
    "NodeAffinity": _of_pod(_node_terms),
    "NodeDeclaredFeatures": _of_pod(required_features),
    "NodeName": _of_pod(lambda pod: pod.node_name),
    "NodePorts": _of_pod(_host_ports),
    "NodeResourcesBalancedAllocation": _requests,
    "NodeResourcesFit": _requests,
    "NodeUnschedulable": _of_pod(_tolerations),
    "NodeVolumeLimits": _of_pod(_volumes),
    "PodTopologySpread": _spread,
    "TaintToleration": _of_pod(_tolerations),
    "VolumeBinding": _of_pod(_volumes),
    "VolumeRestrictions": _of_pod(_volumes),
    "VolumeZone": _of_pod(_volumes),
}
"""How each plugin of kube-scheduler v1.36 signs pods."""

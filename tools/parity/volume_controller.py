"""Plays the volume controller and the provisioner for one pod.

After kube-scheduler has chosen a node for a pod with unbound claims it writes the choice to the volume or the claim
and waits for others to complete the binding. No controller runs, so it is completed here, as the real ones would.
"""

from tools.parity.dice import Obj
from tools.parity.gen_volumes import BIND_COMPLETED, SELECTED_NODE, provisioned_volume
from tools.testbed.apiclient import ApiClient, ApiError


def complete_binding(client: ApiClient, pod: Obj, node: str) -> None:
    """Bind those claims of the pod for which the scheduler has written its choice of node."""
    for claim in _unbound_claims(client, pod):
        prebound = [volume for volume in client.list("v1/PersistentVolume") if _refers_to(volume, claim)]
        if prebound:
            _bind(client, claim, prebound[0])
        elif claim["metadata"].get("annotations", {}).get(SELECTED_NODE) == node:
            volume = client.create(provisioned_volume(claim))
            _bind(client, claim, volume)


def _unbound_claims(client: ApiClient, pod: Obj) -> list[Obj]:
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    claims = []
    for volume in pod["spec"].get("volumes", []):
        if "persistentVolumeClaim" in volume:
            claim_name = volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            claim_name = f"{name}-{volume['name']}"
        else:
            continue
        try:
            claim = client.get("v1/PersistentVolumeClaim", claim_name, namespace)
        except ApiError:
            continue
        if not claim["spec"].get("volumeName"):
            claims.append(claim)
    return claims


def _refers_to(volume: Obj, claim: Obj) -> bool:
    reference = volume["spec"].get("claimRef", {})
    return bool(reference.get("uid") == claim["metadata"]["uid"])


def _bind(client: ApiClient, claim: Obj, volume: Obj) -> None:
    metadata = claim["metadata"]
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    volume_name = volume["metadata"]["name"]
    client.patch("v1/PersistentVolume", volume_name, {"spec": {"claimRef": reference}}, "")
    client.patch("v1/PersistentVolume", volume_name, {"status": {"phase": "Bound"}}, "", subresource="status")
    completed = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": volume_name}}
    client.patch("v1/PersistentVolumeClaim", metadata["name"], completed, metadata["namespace"])
    status = {"status": {"phase": "Bound"}}
    client.patch("v1/PersistentVolumeClaim", metadata["name"], status, metadata["namespace"], subresource="status")

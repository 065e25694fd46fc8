"""VolumeBinding: a pod goes only where its volumes can be, and claims that waited for it get their volumes with it.

`claims` sorts the pod's claims: bound, waiting for a consumer, or not ready. `search` says for all nodes at once which
can reach the bound volumes and satisfy the waiting claims, with a free volume (`matching`) or a new one
(`provisioning`). `choice` picks the volumes for the one node chosen, and holds them in memory until they are written.
`progress` watches them become bound. `hints` says which changes are worth another try.
"""

from podium.plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs

__all__ = ["VolumeBinding", "VolumeBindingArgs"]

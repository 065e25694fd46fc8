"""VolumeBinding: a pod goes only where its volumes can be, and claims that waited for it get their volumes with it.

`plugin` sorts the pod's claims: bound, waiting for a consumer, or not ready. `search` says for all nodes at once which
can reach the bound volumes and satisfy the waiting claims, with a free volume (`matching`) or a new one. `choice` picks
the volumes for the one node chosen, holds them in memory until they are written, and watches them become bound.
"""

from podium.plugins.volume_binding.plugin import VolumeBinding, VolumeBindingArgs

__all__ = ["VolumeBinding", "VolumeBindingArgs"]

"""NodeVolumeLimits: a CSI driver can attach only so many volumes to a node.

The limits stand in the node's CSINode object. For each driver that the pod brings new volumes of:

    attached + new > limit  →  refused

`attached` are the distinct volumes of the pods on the node and of its VolumeAttachments (see `cluster.attached`);
`new` are the pod's volumes that no pod on the node uses yet. In-tree disks count as those of the driver that took them
over, wherever the node has a CSINode object at all.

Surprise: a volume that is attached to the node but used by no pod there counts twice.
"""

from podium.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]

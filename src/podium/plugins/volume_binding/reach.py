"""Finds from where a bound volume can be used.

The volume's node affinity says so. On nodes where its in-tree plugin has moved to a CSI driver, the volume is judged as
that driver's: its zones then stand under the driver's own label. Volumes of equal reach are the same to every node.
"""

from __future__ import annotations

from typing import NamedTuple

from podium.cluster.reach_index import ANYWHERE, Where, where_reachable
from podium.kube import PersistentVolume
from podium.kube.csi_translation import MIGRATED, TranslationError, csi_affinity, in_tree_plugin


class Reach(NamedTuple):
    plain: Where
    plugin: str = ""
    """The in-tree plugin of a volume that can be translated."""
    moved: Where = ANYWHERE
    """What counts instead of `plain` where the plugin has moved."""
    problem: str = ""
    """Why the volume cannot be translated after all."""

    @property
    def everywhere(self) -> bool:
        """Whether the volume can be used from any node."""
        return self.plain == ANYWHERE and self.moved == ANYWHERE and not self.problem


def reach_of(volume: PersistentVolume) -> Reach:
    plain = where_reachable(volume.spec.node_affinity)
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or plugin.name not in MIGRATED:
        return Reach(plain)
    try:
        return Reach(plain, plugin.name, where_reachable(csi_affinity(volume)))
    except TranslationError as error:
        return Reach(plain, plugin.name, problem=str(error))

"""The four ways to patch an object, as pure functions on plain dictionaries."""

from podium_cluster.apiserver.writes.patches.apply import server_side_apply, track_update
from podium_cluster.apiserver.writes.patches.json_patch import json_patch, merge_patch
from podium_cluster.apiserver.writes.patches.strategic import strategic_merge

__all__ = ["json_patch", "merge_patch", "server_side_apply", "strategic_merge", "track_update"]

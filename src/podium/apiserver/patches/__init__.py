"""The four ways to patch an object, as pure functions on plain dictionaries."""

from podium.apiserver.patches.apply import server_side_apply, track_update
from podium.apiserver.patches.json_patch import json_patch
from podium.apiserver.patches.merge_patch import merge_patch
from podium.apiserver.patches.strategic import strategic_merge

__all__ = ["json_patch", "merge_patch", "server_side_apply", "strategic_merge", "track_update"]

"""Says what `podium_cluster` brings: `podium up`."""

from podium.packages import CommandEntry, Package

PACKAGE = Package(
    "podium_cluster",
    commands=(CommandEntry("up", "podium_cluster.cli.up:up", "TRY"),),
    api_rules=("podium_cluster.apiserver.object_rules:refused",),
)

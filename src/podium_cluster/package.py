"""Says what `podium_cluster` brings: `podium up`, `status` and `down`."""

from podium.packages import CommandEntry, Package

PACKAGE = Package(
    "podium_cluster",
    commands=(
        CommandEntry("up", "podium_cluster.cli.up:up", "TRY"),
        CommandEntry("status", "podium_cluster.cli.clusters:status", "TRY"),
        CommandEntry("down", "podium_cluster.cli.clusters:down", "TRY"),
    ),
    api_rules=("podium_cluster.apiserver.object_rules:refused",),
)

"""Says what `podium_dashboard` brings: the dashboard of `podium up` and `podium run`, and `podium dashboard`."""

from podium.packages import CommandEntry, Package

PACKAGE = Package(
    "podium_dashboard",
    commands=(CommandEntry("dashboard", "podium_dashboard.cli.dashboard:dashboard", "TRY"),),
    dashboard="podium_dashboard.server:DashboardServer",
)

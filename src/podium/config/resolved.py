"""Defines a configuration ready to run: merged, expanded, checked, with every plugin's arguments decoded."""

import msgspec

from podium.config.feature_gates import NO_GATES, Gates
from podium.config.points import Point
from podium.config.types import ClientConnection, ExtenderConfig, LeaderElection, Plugins

POD_MAX_IN_UNSCHEDULABLE_PODS_DURATION = 300.0
"""Seconds a pod may be unschedulable before it is tried again, though nothing has woken it."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler name and the plugins that decide for it."""

    scheduler_name: str
    percentage_of_nodes_to_score: int | None = None
    plugins: dict[Point, tuple[str, ...]]  # extension point → plugin names in running order
    weights: dict[str, int]  # score plugin → weight
    placement_weights: dict[str, int]  # the same for placementScore
    args: dict[str, msgspec.Struct]  # of each enabled plugin that takes arguments
    plugin_sets: Plugins  # the merged sets the above was made from, as kube-scheduler shows them


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The whole configuration. `percentage_of_nodes_to_score` is None when the file does not set it."""

    parallelism: int
    percentage_of_nodes_to_score: int | None
    pod_initial_backoff_seconds: int
    pod_max_backoff_seconds: int
    leader_election: LeaderElection
    client_connection: ClientConnection
    enable_profiling: bool
    enable_contention_profiling: bool
    delay_cache_until_active: bool
    extenders: tuple[ExtenderConfig, ...]  # in the order of the file
    profiles: tuple[Profile, ...]
    gates: Gates = NO_GATES  # those of kube-scheduler's feature gates that are on
    pod_max_in_unschedulable_seconds: float = POD_MAX_IN_UNSCHEDULABLE_PODS_DURATION  # a flag sets it, no file

    @property
    def request_limits(self) -> tuple[float, int]:
        """Requests a second and in a burst, zeros for no limit: kube-scheduler's own defaults are not imposed, so that
        a limit holds only where a file sets another one."""
        connection = self.client_connection
        limits = (connection.qps, connection.burst)
        return (0.0, 0) if limits == (ClientConnection().qps, ClientConnection().burst) else limits

    @property
    def extenders_in_call_order(self) -> tuple[ExtenderConfig, ...]:
        """Extenders that must answer come first, ignorable ones last."""
        return tuple(sorted(self.extenders, key=lambda extender: extender.ignorable))

    def profile(self, scheduler_name: str) -> Profile | None:
        """The profile that decides for pods with this `spec.schedulerName`, or None when none does."""
        return next((each for each in self.profiles if each.scheduler_name == scheduler_name), None)

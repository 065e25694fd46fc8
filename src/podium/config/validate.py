"""kube-scheduler's rules about values, each with its message, in its order of checking.

The rules look at a defaulted configuration and at plugin arguments that have been decoded. Nothing stops at the first
error. NodeResourcesFit is the odd one out: kube-scheduler looks its rules up under a wrong key, so they apply only when
the plugin is built (see `build.py`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kubecel.names import dns_label_errors, dns_subdomain_errors, qualified_name_errors
from podium.config.field import FieldError, FieldPath
from podium.config.points import Point
from podium.config.registry import ChecksItself, DiffersByVersion
from podium.config.types import (
    API_VERSION,
    ClientConnection,
    ExtenderConfig,
    KubeSchedulerConfiguration,
    LeaderElection,
    PluginSet,
    SchedulerProfile,
)
from podium.kube.printable import shortened
from podium.kube.requests import is_extended_resource_name
from podium.kube.versions import VersionRules

REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
REMOVED_HINT = "NodeVolumeLimits does its work; remove this entry"
FIT = "NodeResourcesFit"
SHOWN = 80
"""Characters of a name in what is wrong with it."""
# multiPoint and the placement points are missing from kube-scheduler's list, too.
_POINTS_CHECKED_FOR_REMOVED = [point for point in Point if not point.startswith("placement")]

# Decoded arguments by (profile, position in pluginConfig); absent where they did not decode or no plugin has the name.
DecodedArgs = Mapping[tuple[int, int], msgspec.Struct]


def validate(config: KubeSchedulerConfiguration, args: DecodedArgs, rules: VersionRules) -> Iterator[FieldError]:
    """Every rule that a defaulted configuration breaks."""
    root = FieldPath()
    yield from _client_connection(config.client_connection, root.child("clientConnection"))
    yield from leader_election_errors(config.leader_election, root.child("leaderElection"))
    if config.parallelism <= 0:
        detail = "should be an integer value greater than zero"
        yield FieldError.invalid(root.child("parallelism"), config.parallelism, detail)
    profiles = root.child("profiles")
    seen: set[str] = set()
    for i, profile in enumerate(config.profiles):
        path = profiles.index(i)
        yield from _profile(profile, path, {j: each for (owner, j), each in args.items() if owner == i}, rules)
        if (name := profile.scheduler_name or "") in seen:
            # kube-scheduler prints the first profile's path here, which comes out as an empty object.
            yield FieldError.duplicate(path.child("schedulerName"), {})
        seen.add(name)
    yield from _common_queue_sort(config.profiles, profiles)
    yield from _percentage(config.percentage_of_nodes_to_score, root)
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        yield FieldError.invalid(root.child("podInitialBackoffSeconds"), initial, "must be greater than 0")
    if longest < initial:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield FieldError.invalid(root.child("podMaxBackoffSeconds"), longest, detail)
    yield from _extenders(config.extenders, root.child("extenders"))


def _client_connection(connection: ClientConnection, path: FieldPath) -> Iterator[FieldError]:
    if connection.burst < 0:
        yield FieldError.invalid(path.child("burst"), connection.burst, "must be non-negative")


def leader_election_errors(election: LeaderElection, path: FieldPath) -> Iterator[FieldError]:
    if not election.leader_elect:
        return
    lease, renew, retry = election.lease_duration, election.renew_deadline, election.retry_period
    for name, duration in (("leaseDuration", lease), ("renewDeadline", renew), ("retryPeriod", retry)):
        if duration <= 0:
            yield FieldError.invalid(path.child(name), duration, "must be greater than zero")
    if lease <= renew:
        # The value printed is the deadline, not the lease: kube-scheduler's slip, kept.
        yield FieldError.invalid(path.child("leaseDuration"), renew, "must be greater than `RenewDeadline`")
    required = (
        ("resourceLock", election.resource_lock),
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    )
    for name, text in required:  # a file cannot leave these empty, command line flags can
        if not text:
            yield FieldError.required(path.child(name))
    # kube-scheduler takes any text for these two, and then asks forever for a lease that no API server can have.
    for name, text, errors in (
        ("resourceNamespace", election.resource_namespace, dns_label_errors),
        ("resourceName", election.resource_name, dns_subdomain_errors),
    ):
        for detail in errors(text) if text else ():
            yield FieldError.invalid(path.child(name), shortened(text, SHOWN), detail)
    if election.resource_lock != "leases":
        detail = 'resourceLock value must be "leases"'
        yield FieldError.invalid(path.child("resourceLock"), election.resource_lock, detail)


def _percentage(value: int | None, path: FieldPath) -> Iterator[FieldError]:
    if value is not None and not 0 <= value <= 100:
        yield FieldError.invalid(path.child("percentageOfNodesToScore"), value, "not in valid range [0-100]")


def _profile(
    profile: SchedulerProfile, path: FieldPath, args: Mapping[int, msgspec.Struct], rules: VersionRules
) -> Iterator[FieldError]:
    if not profile.scheduler_name:
        yield FieldError.required(path.child("schedulerName"))
    yield from _percentage(profile.percentage_of_nodes_to_score, path)
    sets = profile.plugins.by_key()
    for point in _POINTS_CHECKED_FOR_REMOVED:
        for k, plugin in enumerate(sets[point].enabled):
            yield from _removed(plugin.name, path.child("plugins", point, "enabled").index(k))
    seen: set[str] = set()
    for j, plugin_config in enumerate(profile.plugin_config):
        at, name = path.child("pluginConfig").index(j), plugin_config.name
        if name in seen:
            yield FieldError.duplicate(at, name)
        seen.add(name)
        yield from _removed(name, at)
        own = args.get(j)
        if name != FIT and isinstance(own, ChecksItself):
            yield from own.validate(at.child("args"))
        if isinstance(own, DiffersByVersion):
            yield from own.validate_by(at.child("args"), rules)


def _removed(name: str, path: FieldPath) -> Iterator[FieldError]:
    if name in REMOVED_PLUGINS:
        detail = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
        yield FieldError.invalid(path, name, detail)


def _common_queue_sort(profiles: tuple[SchedulerProfile, ...], path: FieldPath) -> Iterator[FieldError]:
    """There is one queue for all profiles, so they must all sort it the same way."""
    first = profiles[0]
    common = first.plugins.queue_sort
    if len(common.enabled) > 1:
        at = path.index(0).child("plugins", "queueSort", "Enabled")
        yield FieldError.invalid(at, len(common.enabled), "only one queue sort plugin can be enabled")
    sorter = common.enabled[0].name if common.enabled else ""
    configured = [each.args for each in first.plugin_config if sorter and each.name == sorter]
    args = configured[-1] if configured else None
    for i, profile in enumerate(profiles[1:], start=1):
        own = profile.plugins.queue_sort
        if _go_form(own) != _go_form(common):
            at = path.index(i).child("plugins", "queueSort")
            yield FieldError.invalid(at, _go_form(own), "must be the same for all profiles")
        for each in profile.plugin_config:
            if each.name == sorter and each.args != args:
                at = path.index(i).child("pluginConfig", "args")
                yield FieldError.invalid(at, each.args, "queueSort must be the same for all profiles")


def _go_form(plugins: PluginSet) -> dict[str, Any]:
    """A set as Go prints it: capitalised, an unset weight as 0, an empty list as null."""
    both = (("Enabled", plugins.enabled), ("Disabled", plugins.disabled))
    return {key: [{"Name": each.name, "Weight": each.weight or 0} for each in part] or None for key, part in both}


def _extenders(extenders: tuple[ExtenderConfig, ...], path: FieldPath) -> Iterator[FieldError]:
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        if extender.prioritize_verb and extender.weight <= 0:
            at = path.index(i).child("weight")
            yield FieldError.invalid(at, extender.weight, "must have a positive weight applied to it")
        for j, resource in enumerate(extender.managed_resources):
            at = path.index(i).child("managedResources").index(j).child("name")
            for detail in _managed_resource_errors(resource.name):
                yield FieldError.invalid(at, resource.name, detail)
            if resource.name in managed:
                yield FieldError.invalid(at, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        yield FieldError.invalid(path, found, "only one extender can implement bind")


def _managed_resource_errors(name: str) -> tuple[str, ...]:
    errors = qualified_name_errors(name)
    return errors or (() if is_extended_resource_name(name) else ("is an invalid extended resource name",))

"""Applies flags to a configuration: `--leader-elect…` win over what stands in the file, `--kube-api-…` only count
without one, and `--pod-max-in-unschedulable-pods-duration` is in no file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from podium.config.durations import Duration
from podium.config.field import FieldPath
from podium.config.problems import ConfigError, ConfigProblem
from podium.config.resolved import SchedulerConfig
from podium.config.types import LeaderElection
from podium.config.validate import leader_election_errors

SOURCE = "the command line"
_CONNECTION: Final = {"kube-api-qps": "qps", "kube-api-burst": "burst"}
_LONGEST: Final = "pod-max-in-unschedulable-pods-duration"


LeaderFlags = dict[str, str | None]
"""The text of the flags "leader-elect", "leader-elect-lease-duration" and so on; None where not given."""


def with_leader_flags(config: SchedulerConfig, flags: LeaderFlags) -> SchedulerConfig:
    """The configuration with these flags applied. Raises ConfigError naming the flag."""
    return msgspec.structs.replace(config, leader_election=apply_leader_flags(config.leader_election, flags))


def apply_leader_flags(election: LeaderElection, flags: LeaderFlags) -> LeaderElection:
    """The settings of an election with these flags applied. Raises ConfigError naming the flag."""
    changes: dict[str, bool | str | Duration] = {}
    for flag, text in flags.items():
        if text is not None:
            changes[_field(flag)] = _value(flag, text)
    election = msgspec.structs.replace(election, **changes)
    problems = [ConfigProblem(SOURCE, 0, "", str(each)) for each in leader_election_errors(election, FieldPath())]
    if changes and problems:
        raise ConfigError(problems, kube_text=problems[0].message)
    return election


def with_other_flags(
    config: SchedulerConfig, flags: Mapping[str, str], *, beside_file: bool
) -> tuple[SchedulerConfig, list[str]]:
    """The configuration with the other flags applied, and what to tell the reader about those that do not count."""
    warnings = []
    connection = config.client_connection
    for flag, field in _CONNECTION.items():
        if flag in flags:
            value = _number(flag, flags[flag], whole=field == "burst")
            if beside_file:
                warnings.append(f"--{flag} is ignored beside --config: write clientConnection.{field} in the file")
            else:
                connection = msgspec.structs.replace(connection, **{field: value})
    longest = config.pod_max_in_unschedulable_seconds
    if _LONGEST in flags:
        given = _value(_LONGEST, flags[_LONGEST])
        assert isinstance(given, Duration)
        if given < 0:
            raise _refused(_LONGEST, flags[_LONGEST], "write a duration of 0s or more")
        longest = given.seconds
    changed = msgspec.structs.replace(config, client_connection=connection, pod_max_in_unschedulable_seconds=longest)
    return changed, warnings


def _number(flag: str, text: str, *, whole: bool) -> float:
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = -1
    if not 0 <= number < 2**31:
        raise _refused(flag, text, "write a number of 0 or more, like 100")
    return number


def _field(flag: str) -> str:
    return flag.removeprefix("leader-elect-").replace("-", "_")


def _value(flag: str, text: str) -> bool | str | Duration:
    try:
        if flag == "leader-elect":
            return {"true": True, "false": False}[text]
        if flag.endswith(("-duration", "-deadline", "-period")):
            return Duration.parse(text)
    except KeyError:
        raise _refused(flag, text, "write true or false") from None
    except ValueError as error:
        raise _refused(flag, text, str(error)) from None
    return text


def _refused(flag: str, text: str, reason: str) -> ConfigError:
    message = f'--{flag} "{text}": {reason}'
    return ConfigError([ConfigProblem(SOURCE, 0, "", message)], kube_text=message)

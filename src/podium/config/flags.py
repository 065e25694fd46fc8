"""Applies the `--leader-elect*` flags, the only ones that win over what stands in the file."""

from __future__ import annotations

import msgspec

from podium.config.durations import Duration
from podium.config.field import FieldPath
from podium.config.problems import ConfigError, ConfigProblem
from podium.config.resolved import SchedulerConfig
from podium.config.types import LeaderElection
from podium.config.validate import leader_election_errors

SOURCE = "the command line"


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

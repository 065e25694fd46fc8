"""Asks the scheduler in charge what it runs with, which pods wait for it, and, in `podium up`, what it says of a pod.

`podium up` answers on the port of its API, `podium run` on a port of its own, which `--scheduler` names. A stock
kube-scheduler shows its configuration in a form of its own, which is not read. Where no scheduler answers, nothing is
known.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from podium.cli.errors import InputError

if TYPE_CHECKING:
    from podium.client import Access
    from podium.config import Registry, SchedulerConfig
    from podium.kube.versions import VersionRules

PATIENCE: Final = 10.0
"""Seconds for an answer."""


class _Ours(msgspec.Struct, rename="camel"):
    leads: bool = True
    feature_gates: list[str] = []
    kubernetes_version: str = ""
    plugins: dict[str, str] = {}
    explains: bool = False


class _Page(msgspec.Struct):
    componentconfig: dict[str, Any]
    podium: _Ours


class InCharge(NamedTuple):
    """What a scheduler runs with, as far as it is known here."""

    settings: "SchedulerConfig"
    missing: dict[str, str]
    """The plugins that are not installed here, with the files they are in there."""
    explains: bool
    """Whether it can be asked for an explanation."""


class NoAnswerError(Exception):
    """No scheduler answers at that address: why."""


def ask(access: "Access", path: str, parameters: Mapping[str, str] | None = None) -> Any:
    """The JSON document at a path; raises NoAnswerError, and ClientError where nothing answers at all."""
    from podium.client import ApiError, Client
    from podium.kube.bounds import UNDECODABLE

    async def get() -> bytes:
        async with Client(access) as client:
            return await client.get(path, parameters, timeout=PATIENCE)

    try:
        return msgspec.json.decode(asyncio.run(get()))
    except ApiError as error:
        if error.not_found:
            raise NoAnswerError(f"{access.server}{path} is no page of a scheduler") from None
        raise NoAnswerError(str(error)) from None
    except UNDECODABLE as error:
        raise NoAnswerError(f"{access.server}{path} cannot be read: {error}") from None


def in_charge_at(access: "Access", registry: "Registry", rules: "VersionRules", *, named: bool) -> InCharge | None:
    """What the scheduler at an address runs with; None where none answers or another one leads. One that was `named`
    with --scheduler has to answer."""
    from podium.client import ClientError

    try:
        page = _page(ask(access, "/configz"))
        if not named and not page.podium.leads:
            return None
        return read_in_charge(page.componentconfig, page.podium, registry, rules)
    except (NoAnswerError, ClientError) as error:
        if named:
            raise InputError(f"--scheduler {access.server}: {error}; give its configuration with --config") from None
        if isinstance(error, ClientError):
            raise
        return None


def _page(answer: Any) -> _Page:
    try:
        return msgspec.convert(answer, _Page)
    except msgspec.ValidationError:
        raise NoAnswerError("its /configz is not that of a Podium") from None


def read_in_charge(written: dict[str, Any], ours: _Ours, registry: "Registry", rules: "VersionRules") -> InCharge:
    """The configuration without the plugins that are not known here; raises NoAnswerError where it cannot be used."""
    from podium.config import ConfigError, load_config
    from podium.kube.versions import KNOWN, Gate

    if rules.gates == rules.table.on_by_default:  # nothing else was asked for
        on = [gate for gate in Gate if gate in ours.feature_gates]
        known = KNOWN.get(ours.kubernetes_version)
        rules = rules.and_gates(*on) if known is None else known.with_gates(on)
    try:
        missing = _take_out_unknown(written, ours, registry)
        settings = load_config(json.dumps(written), "its configuration", registry, rules).config
    except ConfigError as error:
        problem = error.problems[0]
        raise NoAnswerError(f"its configuration cannot be used here: {problem.path}: {problem.message}") from None
    except (AttributeError, KeyError, TypeError) as error:  # it is no configuration: anything may have answered
        raise NoAnswerError(f"its configuration cannot be read: {type(error).__name__}") from None
    return InCharge(settings, missing, ours.explains)


def _take_out_unknown(written: dict[str, Any], ours: _Ours, registry: "Registry") -> dict[str, str]:
    missing: dict[str, str] = {}
    for profile in written.get("profiles") or ():
        for plugins in (profile.get("plugins") or {}).values():
            enabled = plugins.get("enabled") or ()
            missing |= {
                each["name"]: ours.plugins.get(each["name"], "") for each in enabled if each["name"] not in registry
            }
            plugins["enabled"] = [each for each in enabled if each["name"] in registry]
        profile["pluginConfig"] = [each for each in profile.get("pluginConfig") or () if each["name"] in registry]
    return missing

"""Finds by which Kubernetes minor's rules a command decides: `--kubernetes-version`, the cluster, or the newest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from podium.cli.console import echo
from podium.cli.errors import InputError
from podium.kube.versions import KNOWN, NEWEST, FoundRules, UnknownVersionError, VersionRules, find_rules

if TYPE_CHECKING:
    from podium.client import Access

T = TypeVar("T")


def given_rules(kubernetes_version: str | None) -> VersionRules | None:
    """The rules that `--kubernetes-version` names; None where it is not given. Prints where they are not its own."""
    if kubernetes_version is None:
        return None
    try:
        return with_warning(find_rules(kubernetes_version))
    except UnknownVersionError as error:
        raise InputError(f"--kubernetes-version: {error}") from None


def with_warning(found: FoundRules) -> VersionRules:
    """Print the warning, if there is one."""
    if found.warning:
        echo(f"warning: {found.warning}", err=True)
    return found.rules


def rules_of_dump(server_version: str) -> VersionRules:
    """The rules of the `serverVersion` in a dump; the newest where it has none."""
    if not server_version:
        return NEWEST
    try:
        return with_warning(find_rules(server_version))
    except UnknownVersionError as error:
        raise InputError(f"serverVersion: {error}, as --kubernetes-version") from None


def rules_at(access: Access) -> VersionRules:
    """The rules of a live API server's minor; raises ClientError where it does not answer."""
    import asyncio

    from podium.client import Client
    from podium.serving.server_rules import rules_of_server

    async def ask() -> FoundRules:
        async with Client(access) as client:
            return await rules_of_server(client)

    return with_warning(asyncio.run(ask()))


def first_for_some_minor(given: VersionRules | None, read: Callable[[VersionRules], T]) -> T:
    """A configuration by the rules that were given, else by those of any minor that accepts it, the newest first.

    Which rules count is not known before the cluster answers. What no minor accepts is refused before that.
    """
    from podium.config import ConfigError

    newest, *older = [given] if given is not None else reversed(KNOWN.values())
    try:
        return read(newest)
    except ConfigError:
        for rules in older:
            with suppress(ConfigError):
                return read(rules)
        raise

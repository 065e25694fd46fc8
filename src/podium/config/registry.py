"""Defines what the configuration needs to know of a plugin, and no more.

The configuration sits below the plugins, so it cannot import them. It sees a plugin as a name, the struct its
arguments decode into, and the extension points it takes part in, spelt as the keys under `plugins:` in the file.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

import msgspec

from podium.config.field import FieldError, FieldPath
from podium.kube.versions import VersionRules


class PluginType(Protocol):
    """A plugin class, as far as the configuration is concerned."""

    @property
    def name(self) -> str: ...

    @property
    def Args(self) -> type[msgspec.Struct] | None: ...  # noqa: N802  a class held as an attribute

    @property
    def points(self) -> frozenset[str]: ...


Registry = Mapping[str, PluginType]


@runtime_checkable
class DiffersByVersion(Protocol):
    """An Args struct with a field that some Kubernetes minors, or some feature gates, do not have."""

    def with_defaults_of(self, rules: VersionRules) -> msgspec.Struct: ...

    def validate_by(self, path: FieldPath, rules: VersionRules) -> Iterable[FieldError]: ...


@runtime_checkable
class ChecksItself(Protocol):
    """An Args struct that knows which of its values make no sense."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]: ...

"""What the configuration needs to know about plugins, and no more.

The configuration sits below the plugins, so it cannot import them. It sees a plugin as a name, the struct its
arguments decode into, and the extension points it takes part in, spelt as the keys under `plugins:` in the file.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

import msgspec

from podium.config.field import FieldError, FieldPath

# In the order in which kube-scheduler builds them: of several mistakes it reports the first in this order.
EXTENSION_POINTS = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    "placementGenerate",
    "placementScore",
)


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
class ChecksItself(Protocol):
    """An Args struct that knows which of its values make no sense."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]: ...


def interface(point: str) -> str:
    """kube-scheduler's name for what a plugin must implement to run at a point: `score` → `ScorePlugin`."""
    return f"{point[0].upper()}{point[1:]}Plugin"

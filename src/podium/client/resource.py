"""Names what to list and watch: the path of a collection, the type of its objects, and a selector.

The path says the rest, for that is how the API is laid out: `/api/v1/pods`, `/apis/GROUP/VERSION/PLURAL`, and with
`/namespaces/NAME` before the plural for one namespace only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ApiResource(Generic[T]):
    """A collection; `type` None leaves its objects plain dictionaries; `params` are selectors ("fieldSelector": …).

    >>> ApiResource("/apis/storage.k8s.io/v1/csinodes").name
    'csinodes.storage.k8s.io'
    """

    path: str
    type: type[T] | None = None
    params: Mapping[str, str] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The API group, which is empty for the core group."""
        parts = self.path.strip("/").split("/")
        return "" if parts[0] == "api" else parts[1]

    @property
    def group_version(self) -> str:
        parts = self.path.strip("/").split("/")
        return parts[1] if parts[0] == "api" else f"{parts[1]}/{parts[2]}"

    @property
    def plural(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def name(self) -> str:
        """As kubectl writes it: "pods", "csinodes.storage.k8s.io"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def rule(self) -> str:
        """The RBAC rule without which it can be neither listed nor watched."""
        return f'apiGroups: ["{self.group}"], resources: ["{self.plural}"], verbs: ["list", "watch"]'

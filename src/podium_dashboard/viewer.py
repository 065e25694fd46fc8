"""Says who looks, and which namespaces' pods they may see: those whose pods the API server would list for them."""

from __future__ import annotations

from typing import NamedTuple


class Viewer(NamedTuple):
    """Who looks at a dashboard."""

    name: str = ""
    namespaces: frozenset[str] | None = None
    """Those that it sees; None: all."""

    @property
    def everything(self) -> bool:
        return self.namespaces is None

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def sees_key(self, key: str) -> bool:
        """Whether it sees a pod, or another object of a namespace, by "namespace/name"."""
        return self.namespaces is None or key.partition("/")[0] in self.namespaces


EVERYBODY = Viewer()
"""The viewer of a dashboard on loopback, which has no sign-in."""

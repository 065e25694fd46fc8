"""Lets a driver hear of pods that wait for their devices to be attached before they are bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from podium.kube import Pod


class DeviceWait(NamedTuple):
    """A wait that is over."""

    profile: str
    drivers: Sequence[str]
    """The driver of each device that the pod's claims have."""
    awaited: Sequence[str]
    """The driver of each device that had to be attached."""
    status: str
    """success, failed, timeout or error."""
    seconds: float


class DeviceWaits:
    """What is called when such a wait begins (with the pod and its node) and when it is over."""

    def __init__(self) -> None:
        self.on_begin: Callable[[Pod, str], None] = lambda _pod, _node_name: None
        self.on_end: Callable[[DeviceWait], None] = lambda _wait: None

"""Defines what a plugin may offer to be seen from outside: numbers for `/metrics`, and a page.

The process that runs the plugin serves them: no plugin opens a port.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import NamedTuple

LabelValues = tuple[str, ...]


class MetricKind(enum.StrEnum):
    """Whether a number only grows."""

    COUNTER = "counter"
    """It does; the name of the metric ends in `_total`."""
    GAUGE = "gauge"


class PluginMetric(NamedTuple):
    """A number, or one for each combination of label values, that is read whenever `/metrics` is."""

    kind: MetricKind
    name: str
    text: str
    """What it counts, in one sentence."""
    read: Callable[[], float | Mapping[LabelValues, float]]
    labels: tuple[str, ...] = ()
    by_profile: bool = True
    """Whether each profile has numbers of its own: then `profile` is the first label. Otherwise those of the first
    profile that has the plugin are shown."""


class PageAnswer(NamedTuple):
    """What a page answers to a request."""

    content_type: str
    body: str | bytes
    """Text is sent as UTF-8, and the content type says so."""


class PluginPage(NamedTuple):
    """A page that is served on a port of its own, on loopback unless asked otherwise."""

    name: str
    """One word, in lower case; of several pages with one name the first is served."""
    title: str
    """How messages call it, such as "QoS page"."""
    port: int
    answer: Callable[[str, Mapping[str, str], str], PageAnswer]
    """Given the path, the query and the Accept header of a request."""

"""Offers what plugins need to score by measured load: readings and settings, PromQL, scales, risk, recent pods.

What is listed here is public; the modules may change. A plugin follows a series and scores by its readings:

>>> from podium.load import GivenLoad, Series, SourceSettings
>>> series = Series(source=SourceSettings(address="http://prometheus:9090"), query="node_load1")
>>> load = GivenLoad()  # in a live scheduler `handle.load`, which fetches it
>>> load.set(series, {"node-1": 0.5}, measured_at=0.0)
>>> load.follow(series).of("node-1")
0.5

Names are loaded when they are first used: a process that measures nothing loads none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.load.beta import Floats, probabilities, probability
    from podium.load.commitment import NO_OVERCOMMITMENT, Commitment, Overcommitted, commitment_of
    from podium.load.named_scores import NamedScorePlugin, NamedScores
    from podium.load.promql import by, duration, over_time, rate, selector
    from podium.load.readings import GenerationCounter, GivenLoad, LoadSource, Readings, RowCache, follow, shared
    from podium.load.recent_pods import RecentPods
    from podium.load.risk import Amounts, LoadRisk, load_risk, risk_bounds
    from podium.load.scaling import Better, Missing, Scale, median, scaled, where_missing
    from podium.load.series import Combine, NodeMatch, Series, SeriesPart
    from podium.load.settings import BasicAuth, Header, SourceSettings, Tls, at_address, source_errors
    from podium.load.sources.usage import USAGE_KEYS, NodeUsage, UsageSettings
    from podium.load.utilisation import (
        Utilisation,
        UtilisationArgs,
        address_errors,
        cpu_capacity,
        no_such_provider,
        watcher,
    )

_HOME = {
    "beta": ("Floats", "probabilities", "probability"),
    "commitment": ("NO_OVERCOMMITMENT", "Commitment", "Overcommitted", "commitment_of"),
    "named_scores": ("NamedScorePlugin", "NamedScores"),
    "promql": ("by", "duration", "over_time", "rate", "selector"),
    "readings": ("GenerationCounter", "GivenLoad", "LoadSource", "Readings", "RowCache", "follow", "shared"),
    "recent_pods": ("RecentPods",),
    "risk": ("Amounts", "LoadRisk", "load_risk", "risk_bounds"),
    "scaling": ("Better", "Missing", "Scale", "median", "scaled", "where_missing"),
    "series": ("Combine", "NodeMatch", "Series", "SeriesPart"),
    "settings": ("BasicAuth", "Header", "SourceSettings", "Tls", "at_address", "source_errors"),
    "sources.usage": ("USAGE_KEYS", "NodeUsage", "UsageSettings"),
    "utilisation": ("Utilisation", "UtilisationArgs", "address_errors", "cpu_capacity", "no_such_provider", "watcher"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "NO_OVERCOMMITMENT",
    "USAGE_KEYS",
    "Amounts",
    "BasicAuth",
    "Better",
    "Combine",
    "Commitment",
    "Floats",
    "GenerationCounter",
    "GivenLoad",
    "Header",
    "LoadRisk",
    "LoadSource",
    "Missing",
    "NamedScorePlugin",
    "NamedScores",
    "NodeMatch",
    "NodeUsage",
    "Overcommitted",
    "Readings",
    "RecentPods",
    "RowCache",
    "Scale",
    "Series",
    "SeriesPart",
    "SourceSettings",
    "Tls",
    "UsageSettings",
    "Utilisation",
    "UtilisationArgs",
    "address_errors",
    "at_address",
    "by",
    "commitment_of",
    "cpu_capacity",
    "duration",
    "follow",
    "load_risk",
    "median",
    "no_such_provider",
    "over_time",
    "probabilities",
    "probability",
    "rate",
    "risk_bounds",
    "scaled",
    "selector",
    "shared",
    "source_errors",
    "watcher",
    "where_missing",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'podium.load' has no attribute {name!r}")
    found = getattr(import_module(f"podium.load.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

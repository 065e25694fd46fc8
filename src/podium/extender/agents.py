"""Names the agents that can be served, and the plugins behind each.

An agent is a name for plugins that belong together, and the paths they are found under:

    /NAME/filter, /NAME/prioritize                 the agent as a whole
    /scheduler/predicates/P, /scheduler/priorities/P   its functions one by one, under their classic names

The plugins are ordinary ones: their arguments (typed, with environment variables where they have some) and their
decisions are the same in `podium run`. An agent that does more than answer (one that learns) brings a companion, which
runs for as long as the agent is served. Packages list their agents (`podium.packages`). Any other plugin with a filter
or a score is an agent of its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from podium import packages
from podium.client import Client
from podium.config.registry import Registry
from podium.engine.scheduler import Scheduler
from podium.errors import UserError
from podium.extender.responses import MOST_POINTS
from podium.framework.clock import Clock
from podium.kube import KubeObject


class AgentEnvironment(NamedTuple):
    """What a companion is given from outside."""

    plugins: Mapping[str, Any]
    """The plugins at work, by name."""
    engine: Scheduler
    """Cluster and intake; nothing is scheduled by it."""
    client: Client | None
    """The API server; None where no cluster is watched."""
    clock: Clock
    report: Callable[[str], None]


Companion = Callable[[AgentEnvironment], Coroutine[Any, Any, None]]
"""Work beside the answers, begun when the watch is in sync and cancelled at the end."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Plugins that are served together under one name."""

    name: str
    summary: str
    """One line for a list of agents."""
    predicates: Mapping[str, str] = {}
    """Classic name of a predicate → the plugin whose filter it is; all of them make up /NAME/filter."""
    priorities: Mapping[str, str] = {}
    """Classic name of a priority function → the plugin whose score it is."""
    weights: Mapping[str, int] = {}
    """The plugins whose mean, so weighted, is /NAME/prioritize; without any, all priorities equally."""
    most_points: int = MOST_POINTS
    """What a plugin's score of 100 becomes; lower scores in proportion, rounded, halves up."""
    variables: Mapping[str, str] = {}
    """What its container is set up with in a manifest, to be changed there."""
    watches: tuple[type[KubeObject], ...] = ()
    """Kinds that are to be watched in addition to those that the plugins' scopes call for."""
    companion: Companion | None = None
    unready: Callable[[Mapping[str, Any]], str | None] | None = None
    """Given the plugins by name: what keeps the agent from answering well, or None."""

    @property
    def plugins(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.predicates.values(), *self.priorities.values())))

    @property
    def score_weights(self) -> dict[str, int]:
        return dict(self.weights) or dict.fromkeys(self.priorities.values(), 1)


class AgentError(UserError):
    """What was asked for cannot be served: one sentence says why."""


def choose(names: Sequence[str], registry: Registry, agents: Mapping[str, Any] | None = None) -> list[Agent]:
    """The agents of these names; a plugin's own name stands for that plugin alone."""
    known = packages.agents() if agents is None else agents
    chosen = [_found(known, name) or _of_plugin(name, registry, known) for name in dict.fromkeys(names)]
    _check_names(chosen)
    return chosen


def _found(agents: Mapping[str, Any], name: str) -> Agent | None:
    """The agent of that name; one that a package lists is loaded now."""
    found = agents.get(name)
    agent: Agent | None = packages.load(found) if isinstance(found, str) else found
    return agent


def _of_plugin(name: str, registry: Registry, agents: Mapping[str, Any]) -> Agent:
    plugin = registry.get(name)
    if plugin is None:
        raise AgentError(
            f'there is no agent "{name}": write {", ".join(agents)}, or the name of a plugin that filters or scores'
        )
    filters, scores = "filter" in plugin.points, "score" in plugin.points
    if not (filters or scores):
        raise AgentError(f'plugin "{name}" neither filters nor scores nodes, so an extender has no use for it')
    return Agent(
        name=name,
        summary=f"the plugin {name}",
        predicates={name: name} if filters else {},
        priorities={name: name} if scores else {},
    )


def _check_names(agents: Iterable[Agent]) -> None:
    """Classic names are shared by all agents, so each may be used once."""
    owners: dict[tuple[str, str], str] = {}
    for agent in agents:
        for kind, names in (("predicate", agent.predicates), ("priority", agent.priorities)):
            for name in names:
                other = owners.setdefault((kind, name), agent.name)
                if other != agent.name:
                    raise AgentError(f'agents "{other}" and "{agent.name}" both offer a {kind} "{name}": serve one')

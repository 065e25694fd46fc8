"""Routes each path to an agent and a verb.

    /AGENT/filter, /AGENT/prioritize, /AGENT/preempt, /AGENT/bind     an agent as a whole
    /ONE+OTHER/filter, …                                              several as one: points are added
    /filter, /prioritize, /preempt, /bind                             where one agent is served
    /scheduler/predicates/NAME, /scheduler/priorities/NAME            one function of an agent
    /scheduler/preemption, /scheduler/bind                            all agents

All are POST. A path that leads nowhere is answered with those that lead somewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from podium.extender.agents import Agent
from podium.extender.service import AgentContext, AgentService, Reply, agent_service

FILTER, PRIORITIZE, PREEMPT, BIND = "filter", "prioritize", "preempt", "bind"

Answer = Callable[[bytes], Reply | Awaitable[Reply]]


class Endpoint(NamedTuple):
    """A verb of an agent, by the names that logs and metrics have for them, and what answers it."""

    agent: str
    verb: str
    answer: Answer


class Routes:
    """The paths of one port."""

    def __init__(self, context: AgentContext, agents: Sequence[Agent]) -> None:
        self._context = context
        self._agents = {agent.name: agent for agent in agents}
        self._known: dict[str, Endpoint] = {}
        everything = agent_service(context, agents)
        for agent in agents:
            self._add(f"/{agent.name}", agent.name, [agent])
            for name, plugin in agent.predicates.items():
                service = AgentService(context, [plugin], [])
                self._known[f"/scheduler/predicates/{name}"] = Endpoint(agent.name, FILTER, service.filter)
            for name, plugin in agent.priorities.items():
                service = AgentService(context, [], [({plugin: 1}, agent.most_points)])
                self._known[f"/scheduler/priorities/{name}"] = Endpoint(agent.name, PRIORITIZE, service.prioritize)
        together = "+".join(self._agents)
        self._known["/scheduler/preemption"] = Endpoint(together, PREEMPT, everything.preempt)
        self._known["/scheduler/bind"] = Endpoint(together, BIND, everything.bind)
        if len(agents) == 1:
            self._add("", together, agents)

    def find(self, path: str) -> Endpoint | None:
        endpoint = self._known.get(path)
        return endpoint if endpoint is not None else self._find_joined(path.rstrip("/"))

    @property
    def paths(self) -> list[str]:
        return list(self._known)

    def _add(self, prefix: str, name: str, agents: Sequence[Agent]) -> None:
        service = agent_service(self._context, agents)
        if any(agent.predicates for agent in agents):
            self._known[f"{prefix}/{FILTER}"] = Endpoint(name, FILTER, service.filter)
        if any(agent.priorities for agent in agents):
            self._known[f"{prefix}/{PRIORITIZE}"] = Endpoint(name, PRIORITIZE, service.prioritize)
        self._known[f"{prefix}/{PREEMPT}"] = Endpoint(name, PREEMPT, service.preempt)
        self._known[f"{prefix}/{BIND}"] = Endpoint(name, BIND, service.bind)

    def _find_joined(self, path: str) -> Endpoint | None:
        """Several agents joined by +, in any order: made when first needed."""
        if path in self._known:
            return self._known[path]
        prefix, _, _verb = path.rpartition("/")
        names = prefix.removeprefix("/").split("+")
        if len(names) < 2 or len(set(names)) != len(names) or not _all_in(names, self._agents):
            return None
        if len(self._known) < 10_000:
            self._add(prefix, "+".join(names), [self._agents[name] for name in names])
        return self._known.get(path)


def _all_in(names: Iterable[str], known: Iterable[str]) -> bool:
    return set(names) <= set(known)

"""Which agents there are, and how they are chosen."""

from __future__ import annotations

import pytest

from podium import packages
from podium.extender.agents import Agent, AgentError, choose
from podium.plugins import load_registry

REGISTRY = load_registry()
AGENTS: dict[str, Agent] = {name: packages.load(target) for name, target in packages.agents().items()}


@pytest.mark.parametrize("agent", AGENTS.values(), ids=list(AGENTS))
def test_every_agent_is_made_of_plugins_that_do_what_it_offers(agent: Agent) -> None:
    assert agent.plugins
    assert agent.summary
    for plugin in agent.predicates.values():
        assert "filter" in REGISTRY[plugin].points
    for plugin in (*agent.priorities.values(), *agent.score_weights):
        assert "score" in REGISTRY[plugin].points
    assert set(agent.score_weights) <= set(agent.plugins)


def test_agents_are_chosen_by_name_in_the_order_given_and_once() -> None:
    assert [agent.name for agent in choose(["congestion", "safe", "congestion"], REGISTRY)] == ["congestion", "safe"]


def test_the_whole_of_safe_scores_by_overload_alone() -> None:
    assert AGENTS["safe"].score_weights == {"SafeOverload": 1}
    assert AGENTS["safe"].plugins == ("SafeOverload", "SafeBalance")


def test_any_plugin_that_filters_or_scores_is_an_agent_of_its_own_name() -> None:
    [agent] = choose(["NodeAffinity"], REGISTRY)
    assert (agent.predicates, agent.priorities) == ({"NodeAffinity": "NodeAffinity"},) * 2
    [agent] = choose(["NodeName"], REGISTRY)
    assert (agent.predicates, agent.priorities) == ({"NodeName": "NodeName"}, {})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("saef", 'there is no agent "saef": write safe, congestion'),
        ("PrioritySort", 'plugin "PrioritySort" neither filters nor scores nodes'),
    ],
)
def test_what_cannot_be_served_is_refused_with_one_sentence(name: str, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        choose([name], REGISTRY)


def test_two_agents_may_not_offer_functions_of_the_same_name() -> None:
    agents = {
        name: Agent(name=name, summary="", priorities={"best": plugin})
        for name, plugin in {"one": "Congestion", "two": "SafeBalance"}.items()
    }
    with pytest.raises(AgentError, match='agents "one" and "two" both offer a priority "best"'):
        choose(["one", "two"], REGISTRY, agents)

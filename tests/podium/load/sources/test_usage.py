"""Free cpu and memory: which queries are asked, and what becomes of the answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

from podium.config.durations import Duration
from podium.framework.clock import ManualClock
from podium.kube import Node
from podium.load.settings import SourceSettings
from podium.load.sources.usage import NodeUsage, UsageSettings
from tests.podium.load.sources.stand_in import StandIn, stand_in, vector
from tools.kit.builders import build

CPU = 'sum without (cpu, mode) (1 - rate(node_cpu_seconds_total{mode="idle"}[1m]))'
MEMORY = "node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes"


def query(function: str, used: str) -> str:
    return f"{function}_over_time(({used})[24h:1m]) and ({used})"


QUERIES = [query(function, used) for used in (CPU, MEMORY) for function in ("avg", "stddev")]
GIB = 2**30


def node(name: str, cpu: str = "4", memory: str = "8Gi") -> Node:
    allocatable = {"cpu": cpu, "memory": memory}
    return build(Node, {"metadata": {"name": name}, "status": {"allocatable": allocatable}})


def measure(answers: Mapping[str, Any], *nodes: Node, **settings: Any) -> tuple[dict[str, dict[str, str]], list[str]]:
    """What is said of the nodes, and why not more is."""

    async def main() -> tuple[dict[str, dict[str, str]], list[str]]:
        async with stand_in() as server:
            _answer(server, answers)
            given = UsageSettings(source=SourceSettings(address=server.url), **settings)
            usage = NodeUsage(given, clock=ManualClock(1e9), rng=random.Random(1))
            try:
                found = await usage.measure(nodes, 1e9)
            finally:
                await usage.close()
            assert len(server.forms) == len({form["query"] for form in server.forms}) == (6 if given.forecast else 4)
            return found, usage.problems

    return asyncio.run(main())


def _answer(server: StandIn, answers: Mapping[str, Any]) -> None:
    server.answers({query: answers.get(query, vector()) for query in (*QUERIES, *answers)})


def per_node(**values: float) -> dict[str, Any]:
    return vector(*(({"node": name}, str(value)) for name, value in values.items()))


MEASURED = {
    QUERIES[0]: per_node(a=1.5, b=0.25),
    QUERIES[1]: per_node(a=0.5, b=0.0004),
    QUERIES[2]: per_node(a=2 * GIB, b=GIB),
    QUERIES[3]: per_node(a=1000.4, b=0),
}


def test_what_is_free_is_what_pods_may_take_less_what_is_used() -> None:
    found, problems = measure(MEASURED, node("a"), node("b", cpu="2", memory="512Mi"), node("c"))
    assert problems == []
    assert found == {
        "a": {
            "mean-free-cpu": "2500",
            "std-free-cpu": "500",
            "mean-free-memory": str(6 * GIB),
            "std-free-memory": "1000",
        },
        # It uses more than pods may take: nothing is free.
        "b": {"mean-free-cpu": "1750", "std-free-cpu": "0", "mean-free-memory": "0", "std-free-memory": "0"},
    }


def test_without_its_deviation_a_mean_says_too_little() -> None:
    found, problems = measure({**MEASURED, QUERIES[1]: per_node(b=1)}, node("a"), node("b"))
    assert found["a"].keys() == {"mean-free-memory", "std-free-memory"}
    assert problems == []


def test_what_is_no_number_is_not_written() -> None:
    found, _problems = measure({**MEASURED, QUERIES[0]: vector(({"node": "a"}, "NaN"))}, node("a"))
    assert "mean-free-cpu" not in found["a"]


def test_a_quantity_without_any_answer_is_told_and_the_other_is_written() -> None:
    found, problems = measure({**MEASURED, QUERIES[2]: vector()}, node("a"))
    assert found["a"].keys() == {"mean-free-cpu", "std-free-cpu"}
    assert len(problems) == 1
    assert problems[0].endswith("has no series for the query")


def test_own_queries_take_the_place_of_the_node_exporters() -> None:
    settings = UsageSettings(
        source=SourceSettings(),
        window=Duration.parse("30m"),
        step=Duration.parse("90s"),
        cpu_query="instance:cores:used",
        memory_query="bytes",
    )
    used = "instance:cores:used"
    assert settings.over_time("avg", "cpu") == f"avg_over_time(({used})[30m:90s]) and ({used})"
    assert settings.over_time("stddev", "memory") == "stddev_over_time((bytes)[30m:90s]) and (bytes)"


def matrix(**series: list[float]) -> dict[str, Any]:
    result = [
        {"metric": {"node": name}, "values": [[1e9, str(value)] for value in values]} for name, values in series.items()
    ]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def test_a_forecast_is_made_of_a_hundred_means() -> None:
    ranges = {
        f"avg_over_time(({CPU})[864s:1m])": matrix(a=[each / 100 for each in range(100)], b=[1.0] * 3),
        f"avg_over_time(({MEMORY})[864s:1m])": matrix(a=[float(GIB)] * 100),
    }
    found, problems = measure({**MEASURED, **ranges}, node("a"), node("b"), forecast=True)
    assert problems == []
    assert (found["a"]["forcasted-free-cpu"], found["a"]["forcasted-free-memory"]) == ("3000", str(7 * GIB))
    assert "forcasted-free-cpu" not in found["b"]


def test_without_a_forecast_the_rest_is_written_and_the_reason_told() -> None:
    found, problems = measure({**MEASURED, f"avg_over_time(({CPU})[864s:1m])": vector()}, node("a"), forecast=True)
    assert "mean-free-cpu" in found["a"]
    assert "forcasted-free-cpu" not in found["a"]
    assert problems

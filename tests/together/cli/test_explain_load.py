import json
from pathlib import Path

from tests.podium.cli.command import podium
from tests.podium.cli.texts import HEADER, documents, node, pod, write

LOAD = """
profiles:
- plugins: {multiPoint: {enabled: [{name: TargetLoadPacking}]}}
  pluginConfig: [{name: TargetLoadPacking, args: {watcherAddress: "http://127.0.0.1:9"}}]
"""
TWO = documents(node("n1"), node("n2"), pod("web"))


def test_load_that_was_not_fetched_is_said_once(tmp_path: Path) -> None:
    config = write(tmp_path, "scheduler.yaml", HEADER + LOAD)
    table = podium("explain", "web", "--from", "-", "--config", config, stdin=TWO)
    data = json.loads(podium("explain", "web", "--from", "-", "--config", config, "-o", "json", stdin=TWO).out)
    (warning,) = data["warnings"]
    assert warning.startswith("measured load was not fetched (CPU/")
    assert table.out.count(warning) == 1
    assert (table.code, table.err) == (0, "")

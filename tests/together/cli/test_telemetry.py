"""`podium telemetry show`: what sources say per node, how old it is, and which of them do not answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from podium_plugins.network_traffic import NetworkTrafficArgs, parts_of, query_of
from tests.podium.cli.command import Ran, podium
from tests.podium.cli.texts import HEADER, documents, write
from tests.podium.load.sources.stand_in import stand_in_beside, vector

NODES = documents(
    *(
        f"""
apiVersion: v1
kind: Node
metadata: {{name: {name}, annotations: {{load: "{load}"}}}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.{number}}}]}}
"""
        for number, (name, load) in enumerate({"n1": "12.5", "n2": "7,2020-01-01T00:00:00Z", "n3": "much"}.items())
    )
)


def show(folder: Path, args: dict[str, Any], *more: str) -> Ran:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"score": {"enabled": [{"name": "Quiet"}]}},
        "pluginConfig": [{"name": "Quiet", "args": args}],
    }
    config = write(folder, "config.yaml", HEADER + yaml.safe_dump({"profiles": [profile]}))
    nodes = write(folder, "nodes.yaml", NODES)
    plugin = ("--plugin", "tests.podium.load.sources.quiet:Quiet")
    return podium("telemetry", "show", "--config", config, "--from", nodes, *plugin, *more)


def test_each_node_is_shown_with_its_value_and_age(tmp_path: Path) -> None:
    ran = show(tmp_path, {"source": {"kind": "annotations", "maxAge": "200000h"}, "query": "load"})
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == ["load", "of", "annotations"]
    assert ["n1", "12.5", "0s"] in lines
    (n2,) = (line for line in lines if line[:1] == ["n2"])
    assert n2[1] == "7"
    assert re.fullmatch(r"\d{7}m", n2[2])
    assert "2 nodes, 1 samples no numbers" in ran.out


def test_data_for_programs(tmp_path: Path) -> None:
    with stand_in_beside() as server:
        server.says(vector(({"instance": "10.0.0.1:9100"}, "3"), ({"instance": "10.9.9.9:9100"}, "4")))
        args = {"source": {"address": server.url}, "query": "node_load1"}
        ran = show(tmp_path, args, "-o", "json")
        assert (ran.code, ran.err) == (0, "")
        (series,) = json.loads(ran.out)
        assert 0 <= series["nodes"]["n2"].pop("ageSeconds") < 60
        assert series == {
            "source": "prometheus",
            "address": server.url,
            "query": "node_load1",
            "problem": None,
            "samples": {"used": 1, "unmatched": 1, "duplicate": 0, "not_finite": 0},
            "nodes": {"n2": {"value": 3.0}},
        }
        assert yaml.safe_load(show(tmp_path, args, "-o", "yaml").out)[0]["query"] == "node_load1"


def test_a_source_that_does_not_answer_ends_with_1_and_one_sentence(tmp_path: Path) -> None:
    with stand_in_beside() as server:
        server.says("", status=503)
        ran = show(tmp_path, {"source": {"address": server.url}, "query": "node_load1"})
        assert ran.code == 1
        assert ran.err == f"node_load1: prometheus {server.url} answered HTTP 503\n"


def test_traffic_that_is_counted_in_one_direction_only_is_said(tmp_path: Path) -> None:
    with stand_in_beside() as server:
        some = vector(({"instance": "10.0.0.1:9100"}, "3"))
        args = NetworkTrafficArgs(prometheus_address=server.url)
        received, sent = (part.query for part in parts_of(args))
        server.answers({query_of(args): vector(), received: some, sent: vector()})
        profile = {
            "plugins": {"score": {"enabled": [{"name": "NetworkTraffic"}]}},
            "pluginConfig": [{"name": "NetworkTraffic", "args": {"prometheusAddress": server.url}}],
        }
        config = write(tmp_path, "config.yaml", HEADER + yaml.safe_dump({"profiles": [profile]}))
        ran = podium("telemetry", "show", "--config", config, "--from", write(tmp_path, "nodes.yaml", NODES))
        assert ran.code == 1
        assert ran.err.endswith(
            f"prometheus {server.url} has no series for the query, node_network_transmit_bytes_total has none: "
            "set direction: rx to go by node_network_receive_bytes_total alone\n"
        )


def test_a_configuration_that_follows_nothing_is_bad_input(tmp_path: Path) -> None:
    ran = podium("telemetry", "show", "--from", write(tmp_path, "nodes.yaml", NODES))
    assert ran.code == 2
    assert "no plugin of the configuration follows measured load" in ran.err


def test_wrong_settings_are_told_with_file_and_line(tmp_path: Path) -> None:
    ran = show(tmp_path, {"source": {"address": "prometheus:9090", "timeout": "0s"}})
    assert ran.code == 2
    assert "source.address: Invalid value" in ran.err
    assert "source.timeout: Invalid value" in ran.err
    assert re.search(r"config\.yaml:\d+", ran.err)

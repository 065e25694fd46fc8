"""`podium up --reload`: a plugin that is saved counts at once, and one that is broken does not."""

import json
import urllib.request
from pathlib import Path

from tests.podium.cli.command import podium
from tests.podium_cluster.up.up_process import PodiumUp

PLUGIN = """
from podium import Plugin

class Favours(Plugin):
    def __init__(self, args, handle):
        super().__init__(args, handle)
        START

    def filter_node(self, cycle, node):
        return None if node.name == "NODE" else "node(s) were not NODE"
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Favours}]}}
"""
POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main", "image": "nginx"}]}}


def create(url: str, name: str) -> None:
    body = json.dumps({**POD, "metadata": {"name": name}}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/api/v1/namespaces/default/pods", body, headers)
    urllib.request.urlopen(request, timeout=10).close()


def write(file: Path, node: str, start: str = "pass") -> None:
    file.write_text(PLUGIN.replace("NODE", node).replace("START", start))


def test_a_saved_plugin_is_taken_in_and_a_broken_one_is_not(tmp_path: Path) -> None:
    plugin, config = tmp_path / "favours.py", tmp_path / "scheduler.yaml"
    write(plugin, "none")
    config.write_text(CONFIG)
    options = ("--port", "0", "--nodes", "3", "--workload", "none", "--qos-port", "0", "--reload")
    with PodiumUp(*options, "--plugin", str(plugin), "--config", str(config), home=tmp_path) as up:
        with urllib.request.urlopen(f"{up.url}/api/v1/nodes", timeout=10) as answer:
            names = [node["metadata"]["name"] for node in json.load(answer)["items"]]
        last = names[-1]
        create(up.url, "waits")
        up.wait_for("no node for default/waits: .* were not none")
        write(plugin, last)
        up.wait_for("favours.py is taken in")
        up.wait_for(f"placed default/waits on {last}")

        plugin.write_text("def broken(:\n")
        up.wait_for(r"favours.py is not taken in, the scheduler goes on as it was: --plugin \S+: line 1: SyntaxError")
        write(plugin, names[0], "raise LookupError('no door')")
        up.wait_for('not taken in.* initializing plugin "Favours": LookupError: no door')
        config.write_text(CONFIG.replace("Favours", "Favors"))
        up.wait_for("scheduler.yaml is not taken in.*Favors")
        create(up.url, "after")
        up.wait_for(f"placed default/after on {last}")
        assert up.stop() == 0
    assert "Traceback" not in up.output


def test_a_plugin_needs_no_configuration(tmp_path: Path) -> None:
    plugin = tmp_path / "favours.py"
    write(plugin, "none")
    options = ("--port", "0", "--nodes", "1", "--workload", "none", "--qos-port", "0", "--reload")
    with PodiumUp(*options, "--plugin", str(plugin), home=tmp_path) as up:
        create(up.url, "waits")
        up.wait_for("no node for default/waits: .* were not none")
        plugin.write_text(PLUGIN.replace("START", "pass").replace("NODE", "none").replace("Favours", "Renamed"))
        up.wait_for("favours.py is taken in")
        assert up.stop() == 0


def test_reload_needs_something_to_look_at() -> None:
    ran = podium("up", "--reload")
    assert (ran.code, ran.err) == (2, "--reload takes in changes of --plugin and --config; give one of them\n")

"""The example of a Prometheus configuration finds what the manifests start, on the ports that the page says."""

import re
from pathlib import Path

import yaml

from tests.podium.cli.command import podium

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "watch-podium.md").read_text()


def test_scheduler_and_controllers_are_scraped_on_their_ports() -> None:
    (example,) = re.findall(r"```yaml\n(rule_files.*?)```", PAGE, re.DOTALL)
    [job] = yaml.safe_load(example)["scrape_configs"]
    [relabelling] = job["relabel_configs"]
    assert relabelling["action"] == "keep"
    for process in ("run", "controller"):
        ran = podium("manifest", process, "--image", "podium:test")
        (deployment,) = (each for each in yaml.safe_load_all(ran.out) if each["kind"] == "Deployment")
        pod = deployment["spec"]["template"]
        [port] = pod["spec"]["containers"][0]["ports"]
        found = {
            "__meta_kubernetes_pod_label_app": pod["metadata"]["labels"]["app"],
            "__meta_kubernetes_pod_container_port_name": port["name"],
        }
        assert re.fullmatch(relabelling["regex"], ";".join(found[name] for name in relabelling["source_labels"]))
        assert f"| `podium {process}` | {port['containerPort']} |" in PAGE

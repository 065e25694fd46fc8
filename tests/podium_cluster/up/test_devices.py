"""`podium up --devices`: nodes with devices, and the sample that asks for them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.podium.cli.command import podium
from tests.podium_cluster.up.pauses import call
from tests.podium_cluster.up.up_process import PodiumUp

QUICK = ("--port", "0", "--speed", "50")
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/gpu/resourceclaims"


def items(up: PodiumUp, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = call(up.url + path)["items"]
    return found


def test_the_sample_gets_its_gpus_and_what_fits_nowhere_is_explained(tmp_path: Path) -> None:
    with PodiumUp("--devices", *QUICK, home=tmp_path) as up:
        assert "12 nodes with 48 devices on" in up.output
        end = time.monotonic() + 120
        while True:
            pods = {each["metadata"]["name"]: each for each in items(up, "/api/v1/namespaces/gpu/pods")}
            running = sorted(name for name, each in pods.items() if each["status"]["phase"] == "Running")
            if len(running) == 5:
                break
            assert time.monotonic() < end, (running, up.output)
            time.sleep(0.1)
        assert "pretraining" not in running
        assert pods["notebook"]["spec"]["nodeName"] == pods["profiler"]["spec"]["nodeName"]
        given = [
            (result["pool"], result["device"])
            for each in items(up, CLAIMS)
            for result in each["status"].get("allocation", {}).get("devices", {}).get("results", ())
        ]
        assert len(given) == len(set(given)) == 4
        explained = podium("explain", "gpu/pretraining", "--kubeconfig", str(up.kubeconfig))
        assert explained.code == 1
        assert "request gpus: wants 32 of class gpu.podium.dev; of 48 devices 48 match" in explained.out
        data = podium("explain", "gpu/pretraining", "--kubeconfig", str(up.kubeconfig), "-o", "json")
        assert "cannot allocate all claims" in json.loads(data.out)["message"]
        call(f"{up.url}/apis/apps/v1/namespaces/gpu/deployments/inference", "DELETE")
        while len(items(up, CLAIMS)) > 2:
            assert time.monotonic() < end, "the claims of pods go with them"
            time.sleep(0.1)


def test_devices_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "devices.yaml"
    file.write_text('[{nodes: "worker-0", count: 3, driver: nic.example.com, name: nic, attributes: {speed: 100}}]')
    with PodiumUp("--devices", str(file), *QUICK, "--nodes", "2", "--workload", "none", home=tmp_path) as up:
        assert "2 nodes with 3 devices on" in up.output
        (only,) = items(up, "/apis/resource.k8s.io/v1/resourceslices")
        assert only["spec"]["nodeName"] == "worker-0"
        assert [device["name"] for device in only["spec"]["devices"]] == ["nic-0", "nic-1", "nic-2"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{}", "Expected `array`, got `object`; write a list such as"),
        ("[{cout: 1}]", "Object contains unknown field `cout` - at `$[0]`; write a list such as"),
        ("[{count: -1}]", "count -1: write a number from 0 to 10000"),
        ("[", "devices.yaml:"),
    ],
)
def test_a_file_of_devices_that_cannot_be_read_is_one_sentence(content: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "devices.yaml"
    file.write_text(content)
    ran = podium("up", "--port", "0", "--no-view", "--devices", str(file))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"--devices {file}")
    assert problem in ran.err
    assert ran.err.count("\n") == 1


def test_devices_that_the_api_refuses_are_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "devices.yaml"
    file.write_text("[{driver: A_}]")
    ran = podium("up", "--port", "0", "--no-view", "--devices", str(file))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("--devices: ")
    assert "RFC 1123" in ran.err
    ran = podium("up", "--devices", "1001")
    assert (ran.code, ran.err) == (2, "--devices 1001: write at most 1000 for each node\n")
    ran = podium("up", "--devices", "nowhere.yaml")
    assert (ran.code, ran.err) == (
        2,
        "--devices nowhere.yaml: cannot be read: No such file or directory; give a number or a file\n",
    )

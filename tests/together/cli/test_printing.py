"""What comes from outside never acts on a terminal, and a reader that ends early changes no exit code."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.podium.cli.command import podium

SAMPLE = "src/podium/samples/cluster.yaml"
ROOT = Path(__file__).parents[3]
EVIL = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202eb"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """A cluster whose names, labels and taints hold escapes."""
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    taint = {"key": "k", "value": EVIL, "effect": "NoSchedule"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "64"}}}
    objects = [
        {"kind": "Node", "metadata": {"name": f"one-{EVIL}"}, "status": {"allocatable": allocatable}},
        {"kind": "Node", "metadata": {"name": "two\nthree"}, "status": {"allocatable": allocatable}},
        {
            "kind": "Node",
            "metadata": {"name": "x"},
            "spec": {"taints": [taint]},
            "status": {"allocatable": allocatable},
        },
        {"kind": "Pod", "metadata": {"name": EVIL}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        {"kind": "Pod", "metadata": {"name": "large"}, "spec": {"containers": [container]}},
    ]
    file = tmp_path / "cluster.json"
    items = [{"apiVersion": "v1", **each} for each in objects]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


@pytest.mark.parametrize("pod", [EVIL, "large", "nowhere"])
@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_names_in_an_explanation_do_not_act(dump: str, pod: str, output: str) -> None:
    ran = podium("explain", pod, "--from", dump, "-o", output)
    assert not RAW.search(ran.out + ran.err), ran
    assert "owned" in ran.out + ran.err


def test_data_still_holds_the_names_as_they_are(dump: str) -> None:
    name = f"one-{EVIL}"
    for read, output in ((json.loads, "json"), (yaml.safe_load, "yaml")):
        nodes = read(podium("explain", "large", "--from", dump, "-o", output).out)["nodes"]
        assert name in {node["name"] for node in nodes}


def test_a_line_break_in_a_name_forges_no_row(dump: str) -> None:
    assert "two\\nthree" in podium("explain", "large", "--from", dump).out


def test_other_commands_show_escapes(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n" + json.dumps(EVIL) + ": 1\n"
    )
    finding = {"pod": EVIL, "outcome": "differs", "podium": EVIL, "other": "b", "points": 3, "reason": EVIL}
    log = tmp_path / "log"
    log.write_text(json.dumps({"shadow": finding}) + "\n")
    for arguments in (
        ("check", str(config)),
        ("check", str(config), "-o", "json"),
        ("explain", "web", "--from", EVIL),
        ("plugins", "new", EVIL),
        ("plugins", "--plugin", EVIL),
        ("shadow", "report", str(log)),
        ("shadow", "report", str(log), "-o", "json"),
        ("bench", "scheduler-perf", "--workload", EVIL),
        ("chaos", "--seeds", EVIL),
        (EVIL,),
    ):
        ran = podium(*arguments)
        assert not RAW.search(ran.out + ran.err), (arguments, ran)
        assert "owned" in ran.out + ran.err, (arguments, ran)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("explain", "shop/checkout", "--from", SAMPLE), 1),
        (("explain", "shop/web-4", "--from", SAMPLE), 0),
        (("explain", "shop/web-4", "--from", SAMPLE, "-o", "json"), 0),
        (("explain", "shop/nothing", "--from", SAMPLE), 2),
        (("plugins",), 0),
        (("--help",), 0),
        (("explain", "--help"), 0),
    ],
)
def test_a_pipe_whose_reader_has_ended_changes_no_exit_code(arguments: tuple[str, ...], code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "podium", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    complaint = process.stderr.read().decode()
    process.stderr.close()
    assert (process.wait(60), "Traceback" in complaint, "Broken" in complaint) == (code, False, False), complaint

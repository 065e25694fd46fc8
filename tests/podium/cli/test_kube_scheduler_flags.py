"""`podium run` reads kube-scheduler's flags: with their meaning, or with a warning of what Podium has instead."""

from __future__ import annotations

import random
import re
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.cli.errors import InputError
from podium.cli.kube_scheduler_flags import FLAGS, read_flags
from podium.config import default_config
from podium.config.flags import with_other_flags
from podium.engine.scheduler import Scheduler
from podium.framework.handle import Driver
from podium.plugins import load_registry
from podium.serving.certificate import SelfSigned
from podium.serving.tls import MIN_VERSIONS, ServingTls
from tests.podium.cli.command import Ran, podium
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod
from tools.testbed.build import CONTROL_PLANE, programs

NOWHERE = "/nonexistent.kubeconfig"


def refused_for_its_kubeconfig(*flags: str) -> Ran:
    """A start that gets past its flags, up to a kubeconfig that there is not."""
    ran = podium("run", f"--kubeconfig={NOWHERE}", *flags)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1].startswith(NOWHERE), ran.err
    return ran


def written(folder: Path, *flags: str) -> dict[str, Any]:
    """The configuration in force."""
    file = folder / "written.yaml"
    ran = podium("run", f"--write-config-to={file}", *flags)
    assert ran.code == 0, ran.err
    found: dict[str, Any] = yaml.safe_load(file.read_text())
    return found


@pytest.mark.usefixtures("testbed_programs")
def test_every_flag_of_the_real_kube_scheduler_is_known() -> None:
    helped = subprocess.run(
        [programs(*CONTROL_PLANE)["kube-scheduler"], "--help"], capture_output=True, text=True, check=True
    )
    flags = set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", helped.stdout, re.MULTILINE))
    assert flags - {"help"} == FLAGS.keys()


def test_the_arguments_of_a_static_pod_are_taken_as_they_are() -> None:
    ran = refused_for_its_kubeconfig(
        "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
        "--bind-address=127.0.0.1",
        "--leader-elect=true",
        "--profiling=false",
        "--port=0",
        "--logtostderr",
        "--v=2",
    )
    assert ran.err.count("\n") == 1


def test_what_is_ignored_is_said_once_each_with_what_there_is_instead() -> None:
    ran = refused_for_its_kubeconfig(
        "--vmodule=queue=5", "--vmodule", "cycle=6", "--profiling", "--tls_sni_cert_key=a,b"
    )
    assert ran.err.splitlines()[:-1] == [
        "warning: --vmodule is ignored: --log-level sets the level of the whole log",
        "warning: --profiling is ignored: there is no /debug/pprof; SIGUSR2 logs what is in memory",
        "warning: --tls-sni-cert-key is ignored: --tls-cert-file is the one certificate",
    ]


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (["--v=2"], ["--log-level=info"]),
        (["-v=6"], ["--log-level=debug"]),
        (["-v6"], ["--log-level=debug"]),
        (["-v", "10"], ["--log-level=trace"]),
        (["--v", "4", "--log-level", "error"], ["--log-level=debug", "--log-level", "error"]),
        (["--log-level=error", "--v=4"], ["--log-level=debug", "--log-level=error"]),
        (["--logging-format=json"], ["--log-format=json"]),
        (["--leader-elect"], ["--leader-elect=true"]),
        (["--leader-elect", "false"], ["--leader-elect=false"]),
        (["--leader-elect=F", "--config", "a.yaml"], ["--leader-elect=false", "--config=a.yaml"]),
        (["--leader_elect_lease_duration", "20s"], ["--leader-elect-lease-duration=20s"]),
        (["--authentication-skip-lookup=false"], []),
        (["--authentication-skip-lookup"], ["--authentication-skip-lookup"]),
        (["--lock-object-name=ours"], ["--leader-elect-resource-name=ours"]),
        (["--plugin", "a.py", "--shadow"], ["--plugin", "a.py", "--shadow"]),
    ],
)
def test_flags_become_options(typed: list[str], read: list[str]) -> None:
    assert read_flags(typed) == (read, {}, [])


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (["--v"], "--v needs a value: write it as --v=VALUE"),
        (["-v=high"], '-v "high" is no whole number: write it like -v=2, or --log-level info'),
        (["--profiling=perhaps"], '--profiling "perhaps": write true or false'),
        (["--scheduler-name=a"], "write profiles[].schedulerName in the file of --config"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(typed: list[str], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        read_flags(typed)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("--pod-max-in-unschedulable-pods-duration=-1s", "write a duration of 0s or more"),
        ("--kube-api-burst=many", "write a number of 0 or more"),
        ("--tls-min-version=1.3", "write one of VersionTLS10"),
        ("--leader-elect-resource-lock=endpoints", 'must be "leases"'),
        ("--logging-format=xml", "write one of text, json"),
        ("--nope=1", "No such option: --nope"),
    ],
)
def test_a_value_that_kube_scheduler_would_refuse_is_bad_input(typed: str, sentence: str) -> None:
    ran = podium("run", typed)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert sentence in ran.err


def test_limits_of_requests_count_without_a_file_and_only_then(tmp_path: Path) -> None:
    flags = ("--kube-api-qps=7", "--kube-api-burst", "9")
    connection = written(tmp_path, *flags)["clientConnection"]
    assert (connection["qps"], connection["burst"]) == (7, 9)
    config = tmp_path / "scheduler.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    ran = refused_for_its_kubeconfig(*flags, f"--config={config}")
    assert "warning: --kube-api-qps is ignored beside --config: write clientConnection.qps in the file\n" in ran.err
    assert written(tmp_path, *flags, f"--config={config}")["clientConnection"]["qps"] == 50


def test_the_configuration_in_force_is_written_and_nothing_is_run(tmp_path: Path) -> None:
    assert written(tmp_path, "--leader-elect-lease-duration=20s")["leaderElection"]["leaseDuration"] == "20s"
    ran = podium("run", f"--write-config-to={tmp_path}/none/a.yaml")
    assert (ran.code, ran.err) == (
        2,
        f"--write-config-to {tmp_path}/none/a.yaml: cannot be written: No such file or directory\n",
    )


def test_pods_that_nothing_wakes_are_tried_again_when_the_flag_says_so() -> None:
    world, registry = World(default=True), load_registry()
    flag = {"pod-max-in-unschedulable-pods-duration": "10s"}
    config, _warnings = with_other_flags(default_config(registry), flag, beside_file=True)
    scheduler = Scheduler(
        config,
        registry,
        Driver(
            clock=world.clock,
            writer=world,
            rng=random.Random(0),
            report=print,
        ),
        world,
    )
    scheduler.intake.set(make_node("n", cpu=1))
    scheduler.intake.set(make_pod("p", requests={"cpu": "2"}))
    scheduler.schedule_one()
    assert scheduler.queue.pending().unschedulable == 1
    world.clock.advance(31.0)
    scheduler.tick()
    assert scheduler.queue.pending().unschedulable == 0


@pytest.mark.parametrize("name", MIN_VERSIONS)
def test_no_older_version_of_tls_is_spoken(name: str) -> None:
    least = MIN_VERSIONS[name]
    tls = ServingTls(SelfSigned("localhost", "127.0.0.1"), lambda: b"", lambda: 0.0, print, least)
    assert tls.context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True).context.minimum_version == least
    assert least >= ssl.TLSVersion.TLSv1_2


def test_a_version_is_printed() -> None:
    assert podium("run", "--version").out == podium("version").out


@pytest.mark.parametrize("written", ["1.35", "kube=1.35"])
def test_the_emulated_version_is_the_minor_whose_rules_decide(written: str) -> None:
    assert read_flags([f"--emulated-version={written}"]).args == ["--kubernetes-version=1.35"]
    assert refused_for_its_kubeconfig(f"--emulated-version={written}").err.count("\n") == 1

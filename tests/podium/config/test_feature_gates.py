"""`--feature-gates` is read as kube-scheduler reads it, and refused in its words."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from podium.config import ConfigError, default_config, load_config
from podium.config.feature_gates import read_gates
from podium.kube.versions import KNOWN, NEWEST, Gate, VersionRules
from podium.plugins import load_registry
from tests.podium.cli.command import podium
from tools.kit.real_rules import REAL_RULES
from tools.testbed.availability import TestbedUnavailable
from tools.testbed.build import CONTROL_PLANE, programs

DECISION = Path(__file__).parents[3] / "docs" / "decisions" / "0003-exactly-kube-scheduler.md"
ALL_OF_OURS = (
    "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true"
)

OLD = KNOWN["1.36"]
OF_GROUPS = {Gate.GENERIC_WORKLOAD, Gate.GANG_SCHEDULING, Gate.TOPOLOGY_AWARE, Gate.WORKLOAD_AWARE_PREEMPTION}
DEFAULTS = OLD.table.defaults

REFUSED = {
    "Nope=true": "unrecognized feature gate: Nope",
    "GangScheduling": "missing bool value for GangScheduling",
    "GangScheduling=maybe": (
        'invalid value of GangScheduling=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'
    ),
    "GangScheduling=true": "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
    "WorkloadAwarePreemption=true,GenericWorkload=true": (
        "WorkloadAwarePreemption is enabled, but depends on features that are disabled: [GangScheduling]"
    ),
    "DynamicResourceAllocation=false": (
        "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true"
    ),
    "GitRepoVolumeDriver=true": "cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false",
    "wardle:GangScheduling=true": "component not registered: wardle",
}


@pytest.mark.parametrize(("flag", "text"), REFUSED.items())
def test_what_kube_scheduler_refuses_is_refused_in_its_words(flag: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_gates([flag], OLD)
    assert refused.value.kube_text == text
    assert str(refused.value).partition(" (Podium switches ")[0] == f"--feature-gates: {text}"


@pytest.mark.parametrize("flag", REFUSED)
def test_kube_scheduler_says_the_same(flag: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_gates([flag], REAL_RULES)
    try:
        command = str(programs(*CONTROL_PLANE)["kube-scheduler"])
    except TestbedUnavailable as unavailable:
        pytest.skip(str(unavailable))
    answer = subprocess.run(
        [command, f"--feature-gates={flag}", "--kubeconfig=/nonexistent"], capture_output=True, text=True, check=False
    )
    quoted = (refused.value.kube_text or "").replace('"', '\\"')
    assert f'err="{quoted}"' in answer.stderr


@pytest.mark.parametrize(
    ("flags", "on"),
    [
        ([], set()),
        ([ALL_OF_OURS], OF_GROUPS),
        (["GenericWorkload=true", "GangScheduling=1"], {Gate.GENERIC_WORKLOAD, Gate.GANG_SCHEDULING}),
        (["kube:GenericWorkload=T", " kube:GangScheduling = false "], {Gate.GENERIC_WORKLOAD}),
        (["GenericWorkload=true,,", "GenericWorkload=false"], set()),
        (["AllAlpha=true"], set(OLD.switched)),
        (
            ["AllAlpha=true,WorkloadAwarePreemption=false"],
            OLD.switched - {Gate.WORKLOAD_AWARE_PREEMPTION},
        ),
        (["AllBeta=true"], set()),
    ],
)
def test_gates_may_be_given_in_several_ways(flags: list[str], on: set[Gate]) -> None:
    assert read_gates(flags, OLD).gates == on


@pytest.mark.parametrize(
    ("flags", "added", "removed"),
    [
        (["GenericWorkload=true"], OF_GROUPS - {Gate.TOPOLOGY_AWARE}, set()),
        (["StorageCapacityScoring=false"], set(), {Gate.STORAGE_CAPACITY_SCORING}),
        (["AllBeta=false"], set(), {Gate.STORAGE_CAPACITY_SCORING, Gate.VOLUME_LIMIT_SCALING}),
        (["AllBeta=true"], OF_GROUPS - {Gate.TOPOLOGY_AWARE}, set()),
    ],
)
def test_1_37_has_gates_that_are_on_and_one_for_all_of_pod_groups(
    flags: list[str], added: set[Gate], removed: set[Gate]
) -> None:
    assert read_gates(flags, NEWEST).gates == (NEWEST.gates | added) - removed


@pytest.mark.parametrize(
    "gone", ["SchedulerQueueingHints", "SidecarContainers", "GangScheduling", "WorkloadAwarePreemption"]
)
def test_a_gate_that_1_37_no_longer_has_is_refused_there_only(gone: str) -> None:
    read_gates([f"{gone}=true", "GenericWorkload=true", "GangScheduling=true"], OLD)
    with pytest.raises(ConfigError) as refused:
        read_gates([f"{gone}=true"], NEWEST)
    assert refused.value.kube_text == f"unrecognized feature gate: {gone}"


@pytest.mark.parametrize(
    "locked",
    [
        "DRAExtendedResource",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "NodeDeclaredFeatures",
        "InPlacePodVerticalScalingInitContainers",
    ],
)
def test_a_gate_that_1_37_locked_may_be_switched_off_in_1_36_only(locked: str) -> None:
    assert OLD.table.defaults[locked]
    assert locked not in OLD.table.locked_on
    with pytest.raises(ConfigError) as refused:
        read_gates([f"{locked}=false"], NEWEST)
    assert refused.value.kube_text == f"cannot set feature gate {locked} to false, feature is locked to true"


def test_a_gate_that_podium_cannot_switch_is_said_to_stay_as_it_is() -> None:
    assert read_gates(["NodeDeclaredFeatures=true", "OpportunisticBatching=false"], OLD).warnings == [
        "feature gate OpportunisticBatching: Podium has no switch for it; it stays on"
    ]


def test_the_decision_has_every_gate_with_its_default() -> None:
    rows = re.findall(r"^\| ([A-Z].+?) \| (on|off) \|", DECISION.read_text(), re.MULTILINE)
    found = {name: default == "on" for names, default in rows for name in re.findall(r"[A-Za-z0-9]+", names)}
    assert {name: found.get(name) for name in DEFAULTS} == dict(DEFAULTS)


@pytest.mark.parametrize("rules", KNOWN.values(), ids=str)
def test_every_gate_that_another_needs_is_known(rules: VersionRules) -> None:
    needs = rules.table.needs
    assert {*needs, *(need for needed in needs.values() for need in needed)} <= rules.table.defaults.keys()
    assert rules.switched <= rules.table.defaults.keys()


def test_the_default_plugins_end_with_those_of_the_gates() -> None:
    registry = load_registry()
    rules = OLD.with_gates(read_gates([ALL_OF_OURS], OLD).gates)

    def names(config: object) -> list[str]:
        enabled = config.profiles[0].plugin_sets.multi_point.enabled  # type: ignore[attr-defined]
        return [entry.name for entry in enabled]

    off, on = names(default_config(registry, OLD)), names(default_config(registry, rules))
    assert on == [*off, "GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"]


def test_the_configuration_file_has_no_field_for_gates() -> None:
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "featureGates: {GenericWorkload: true}\n"
    )
    with pytest.raises(ConfigError) as refused:
        load_config(text, "scheduler.yaml", load_registry())
    assert refused.value.kube_text == 'strict decoding error: unknown field "featureGates"'


def test_podium_check_shows_placements_only_with_the_gate_that_uses_them(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    assert "placementScore" not in podium("check", str(file)).out
    shown = podium("check", str(file), "--feature-gates", "GenericWorkload=1,TopologyAwareWorkloadScheduling=1").out
    assert "placementScore      NodeResourcesFit (1), PodGroupPodsCount (1)" in shown


def test_podium_check_shows_the_point_that_makes_room_for_groups_only_with_groups(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    assert "podGroupPostFilter" not in podium("check", str(file)).out
    shown = podium("check", str(file), "--feature-gates", "GenericWorkload=1").out
    assert "podGroupPostFilter  DynamicResources, DefaultPreemption" in shown


@pytest.mark.parametrize(("version", "code"), [("1.35", 2), ("1.36", 2), ("1.37", 0)])
def test_the_point_that_makes_room_for_groups_is_unknown_before_1_37(tmp_path: Path, version: str, code: int) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins:\n"
        "    podGroupPostFilter: {disabled: [{name: '*'}], enabled: [{name: DefaultPreemption}]}\n"
    )
    ended = podium("check", str(file), "--kubernetes-version", version)
    assert ended.code == code
    assert ('unknown field "profiles[0].plugins.podGroupPostFilter"' in ended.out + ended.err) is (code == 2)


def test_an_upgrade_to_1_37_names_the_new_point(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    told = podium("check", str(file), "--kubernetes-version", "1.36", "--upgrade-to", "1.37", "-o", "json").out
    assert "profiles[].plugins.podGroupPostFilter" in told


def test_a_gate_that_resembles_none_is_answered_with_those_that_podium_switches() -> None:
    ended = podium("check", "-", "--feature-gates", "Foo=true")
    assert (ended.code, ended.err) == (
        2,
        "--feature-gates: unrecognized feature gate: Foo (Podium switches GenericWorkload, "
        "TopologyAwareWorkloadScheduling, StorageCapacityScoring, VolumeLimitScaling, DRADeviceTaintRules)\n",
    )


@pytest.mark.parametrize("command", ["check", "explain", "run"])
def test_a_gate_misspelt_ends_every_command_with_2(command: str) -> None:
    arguments = {"check": ("-",), "explain": ("pod",)}.get(command, ())
    ended = podium(command, *arguments, "--feature-gates", "GenericWorkloa=true", stdin="")
    assert ended.code == 2
    why = "--feature-gates: unrecognized feature gate: GenericWorkloa (did you mean GenericWorkload?)"
    assert ended.err.splitlines()[-1] == why


def test_the_decision_record_has_every_gate_of_the_scheduler_with_its_default() -> None:
    """Gates that kube-scheduler v1.36.4 reads are those of its packages; prefixes name them all but for a few."""
    text = (Path(__file__).parents[3] / "docs/decisions/0003-exactly-kube-scheduler.md").read_text()
    rows = [line.split("|")[1:4] for line in text.splitlines() if line.startswith("| ") and line.count("|") == 4]
    told = {name: default.strip() for names, default, _here in rows for name in re.findall(r"\b[A-Z]\w{6,}", names)}
    assert {name: default == "on" for name, default in told.items()} == {name: DEFAULTS[name] for name in told}
    assert set(told.values()) == {"on", "off"}
    ours = ("DRA", "DynamicResource", "Scheduler", "Gang", "Workload", "GenericWorkload", "NominatedNodeName")
    assert {name for name in DEFAULTS if name.startswith(ours)} <= told.keys()
    assert OLD.switched <= told.keys()

"""`podium whatif` answers as real kube-schedulers once decided: recorded pods, asked on the command line."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium.whatif.fit import GATED
from tests.podium.cli.command import podium
from tools.parity.case import Case
from tools.parity.podium_side import devices_by_chance
from tools.parity.recording import read_recording, recording_of

MINORS = ("1.36", "1.35")
SAMPLE = 25


def asked(case: Case, folder: Path) -> Any:
    """The pod of `podium whatif -f pod.json … -o json`."""
    dump, pod, config = folder / "dump.json", folder / "pod.json", folder / "config.json"
    dump.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": case.objects}))
    pod.write_bytes(msgspec.json.encode(case.pod))
    config.write_bytes(msgspec.json.encode(case.config))
    ran = podium(
        "whatif", "-f", str(pod), "--from", str(dump), "--config", str(config),
        "--kubernetes-version", case.kubernetes, "-o", "json",
    )  # fmt: skip
    assert ran.code in (0, 1), ran.err
    found = json.loads(ran.out)["answer"]["pods"]
    assert len(found) == 1, found
    return found[0]


def differences(case: Case, found: Any) -> list[str]:
    """In what the answer is not what kube-scheduler did; which of equally good nodes it takes is chance."""
    real, after = case.decision, found["after"]
    if real.outcome == "gated":
        return [] if found["verdict"] == GATED else [f"gated, but {found['verdict']}"]
    if real.outcome == "bound":
        taken = [after["node"], *after.get("ties", ())]
        best = max(real.totals.values(), default=None)
        if real.feasible is None:  # nothing scores: the first node that fits is taken, and which comes first is chance
            return [] if after["node"] else [f"bound to {real.node}, whatif says {after['message']}"]
        lines = [] if real.node in taken else [f"bound to {real.node}, whatif says {taken}: {after.get('message')}"]
        if best is not None and after.get("total") not in (None, best):
            lines.append(f"total {best}, whatif says {after['total']}")
        return lines
    lines = [] if after["node"] is None else [f"fits nowhere, whatif says {after['node']}"]
    if after.get("message") != real.message:
        lines += ["the text differs", f"  kube-scheduler: {real.message}", f"  whatif:         {after.get('message')}"]
    if bool(real.preemption_node) != ("victims" in found):
        lines.append(f"preemption on {real.preemption_node or 'no node'}, whatif says {found.get('victims')}")
    elif real.preemption_node:
        chosen = found["victims"]
        victims = real.candidate_victims.get(chosen["node"], real.victims)
        if sorted(chosen["pods"]) != sorted(victims):
            lines.append(f"victims {victims}, whatif says {chosen}")
    return lines


def wrong(cases: list[Case], folder: Path) -> list[str]:
    """What differs, leaving out pods for which kube-scheduler looks at devices in the order of a Go map."""
    judged = [case for case in cases if not devices_by_chance(case)]
    return [f"{case.name}: {line}" for case in judged for line in differences(case, asked(case, folder))]


@pytest.mark.parametrize("minor", MINORS)
def test_a_sample_of_what_was_recorded_is_answered_the_same(minor: str, tmp_path: Path) -> None:
    cases = read_recording(recording_of(minor))
    assert wrong(cases[:: len(cases) // SAMPLE], tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("minor", MINORS)
def test_all_that_was_recorded_is_answered_the_same(minor: str, tmp_path: Path) -> None:
    assert wrong(read_recording(recording_of(minor)), tmp_path) == []

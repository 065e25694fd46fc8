"""Counts what the cases have exercised, so that "all equal" means something.

A run in which no pod ever met a volume limit proves nothing about volume limits. The reasons in kube-scheduler's own
messages and its own scores are counted; what never occurred is named in a warning.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from podium.kube import LabelSelector
from podium.kube.selector import compile_label_selector
from tools.parity.case import Case
from tools.parity.dice import Obj
from tools.parity.gen_config import SCORERS
from tools.parity.podium_side import Answer

# Beginnings of the reasons kube-scheduler can give, with the plugin that gives them.
REASONS = {
    "node(s) were unschedulable": "NodeUnschedulable",
    "node(s) had untolerated taint(s)": "TaintToleration",
    "node(s) didn't match scheduler-enforced node affinity": "NodeAffinity",
    "node(s) didn't match Pod's node affinity/selector": "NodeAffinity",
    "node(s) didn't satisfy plugin(s)": "NodeAffinity",
    "pod affinity terms conflict": "NodeAffinity",
    "node(s) didn't have free ports for the requested pod ports": "NodePorts",
    "Too many pods": "NodeResourcesFit",
    "Insufficient": "NodeResourcesFit",
    "node(s) had no available disk": "VolumeRestrictions",
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod": "VolumeRestrictions",
    "node(s) exceed max volume count": "NodeVolumeLimits",
    "node(s) didn't match PersistentVolume's node affinity": "VolumeBinding",
    "node(s) didn't find available persistent volumes to bind": "VolumeBinding",
    "node(s) did not have enough free storage": "VolumeBinding",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": "VolumeBinding",
    "pod has unbound immediate PersistentVolumeClaims": "VolumeBinding",
    'persistentvolumeclaim "': "VolumeBinding",
    "waiting for ephemeral volume controller": "VolumeBinding",
    "node(s) had no available volume zone": "VolumeZone",
    'persistentvolume "': "VolumeZone",
    "node(s) didn't match pod topology spread constraints (missing required label)": "PodTopologySpread",
    "node(s) didn't match pod topology spread constraints": "PodTopologySpread",
    "node(s) didn't match pod affinity rules": "InterPodAffinity",
    "node(s) didn't match pod anti-affinity rules": "InterPodAffinity",
    "node(s) didn't satisfy existing pods anti-affinity rules": "InterPodAffinity",
    "node(s) didn't match Pod's required features": "NodeDeclaredFeatures",
    "cannot allocate all claims": "DynamicResources",
    "resourceclaim not available on the node": "DynamicResources",
    "still not schedulable": "DynamicResources",
    "No preemption victims found for incoming pod": "DefaultPreemption",
    "Preemption is not helpful for scheduling": "DefaultPreemption",
    "not eligible due to preemptionPolicy=Never": "DefaultPreemption",
    "not eligible due to a terminating pod on the nominated node": "DefaultPreemption",
}
_COUNTED = re.compile(r"^\d+ ")


@dataclass
class Tally:
    cases: int = 0
    equal: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)  # cases in which kube-scheduler gave the reason
    errors: Counter[str] = field(default_factory=Counter)
    podium_rejections: Counter[str] = field(default_factory=Counter)  # nodes Podium rejected, by plugin
    scored: Counter[str] = field(default_factory=Counter)  # cases in which a plugin gave nodes different scores
    preemptions: int = 0
    budget_violations: int = 0
    retries: int = 0
    ties: int = 0
    disturbed: Counter[str] = field(default_factory=Counter)
    themes: Counter[str] = field(default_factory=Counter)

    def add(self, case: Case, answer: Answer | None, equal: bool) -> None:
        real = case.decision
        self.cases += 1
        self.equal += equal
        self.outcomes[real.outcome] += 1
        self.themes[case.theme] += 1
        self.retries += "retry" in case.name
        if real.outcome == "unschedulable":
            self.reasons.update({*reasons_in(real.message)})
        elif real.outcome == "error":
            self.errors[re.sub(r'"[^"]*"', '"…"', real.message)[:100]] += 1
        for plugin in {name for scores in real.scores.values() for name in scores}:
            values = {scores.get(plugin) for scores in real.scores.values()}
            self.scored[plugin] += len(values) > 1
        if real.preemption_node:
            self.preemptions += 1
            self.budget_violations += violates_budget(case.objects, real.victims)
        best = max(real.totals.values(), default=0)
        self.ties += sum(total == best for total in real.totals.values()) > 1
        if answer is not None:
            self.podium_rejections.update(node.plugin for node in answer.nodes.values() if node.plugin)

    def table(self) -> str:
        lines = [f"{self.cases} cases: " + ", ".join(f"{count} {name}" for name, count in self.outcomes.most_common())]
        lines.append(
            f"preemptions {self.preemptions} (budget violated {self.budget_violations}), retries {self.retries}, "
            f"ties between best nodes {self.ties}"
        )
        lines.append("themes: " + ", ".join(f"{name} {count}" for name, count in self.themes.most_common()))
        lines += ["", f"{'plugin that gave different scores':<60} cases"]
        lines += [f"  {name:<58} {count:>5}" for name, count in self.scored.most_common()]
        lines += ["", f"{'reason in messages of kube-scheduler':<60} cases"]
        lines += [f"  {name[:57]:<58} {count:>5}" for name, count in self.reasons.most_common()]
        if self.errors:
            lines += ["", "errors of kube-scheduler"]
            lines += [f"  {name:<58} {count:>5}" for name, count in self.errors.most_common()]
        if self.podium_rejections:
            lines += ["", f"{'plugin by which Podium rejected':<60} nodes"]
            lines += [f"  {name:<58} {count:>5}" for name, count in self.podium_rejections.most_common()]
        return "\n".join(lines)

    def warnings(self) -> list[str]:
        """What this run says nothing about."""
        unseen = [
            f"never seen: {reason!r} of {plugin}" for reason, plugin in REASONS.items() if not self.reasons[reason]
        ]
        return unseen + [f"never gave different scores: {name}" for name in SCORERS if not self.scored[name]]


def reasons_in(message: str) -> list[str]:
    """The known reasons in a failure text, those of the preemption part included; unknown ones as they stand."""
    found = []
    for part in re.split(r"nodes are available: |, |\. |preemption: ", message):
        text = _COUNTED.sub("", part).strip(" .")
        if text in ("", "no new claims to deallocate", "not found") or re.fullmatch(r"\d+/\d+", text):
            continue
        known = [reason for reason in REASONS if text.startswith(reason)]
        found.append(max(known, key=len) if known else text)
    return found


def violates_budget(objects: list[Obj], victims: list[str]) -> bool:
    """Whether evicting the victims breaks a disruption budget."""
    pods = {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in objects if each["kind"] == "Pod"
    }
    for budget in (each for each in objects if each["kind"] == "PodDisruptionBudget"):
        selector = budget["spec"].get("selector")
        if not selector:
            continue
        matches = compile_label_selector(msgspec.convert(selector, LabelSelector))
        status = budget.get("status", {})
        hit = 0
        for victim in victims:
            metadata = pods[victim]["metadata"]
            if (
                metadata["namespace"] == budget["metadata"]["namespace"]
                and metadata["name"] not in status.get("disruptedPods", {})
                and matches.matches(metadata.get("labels", {}))
            ):
                hit += 1
        if hit > status.get("disruptionsAllowed", 0):
            return True
    return False

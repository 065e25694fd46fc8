"""One case: a pod, the cluster it was decided on, and what kube-scheduler decided.

`objects` is what the API server listed right before the decision, nodes in the order in which the scheduler's cache
took them in, because that order decides between equal scores. A case can be written to a folder from which
`podium explain` reads it back.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml

from kubecel.quantity import parse
from tools.parity.dice import Obj


@dataclass
class Decision:
    """What kube-scheduler did with a pod."""

    outcome: str  # bound, unschedulable, error or gated
    node: str = ""
    message: str = ""
    # Feasible nodes in the order they were scored; None where the search ended early and the log cannot tell.
    feasible: list[str] | None = None
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    preemption_node: str = ""
    victims: list[str] = field(default_factory=list)
    # Every node on which preemption would help, with its victims, the chosen one included.
    candidate_victims: dict[str, list[str]] = field(default_factory=dict)
    # What the claims of a bound pod have: "claim request driver/pool/device".
    devices: list[str] = field(default_factory=list)
    # What was written to the claims that a bound pod names, by their key, but for what is made by chance or the time.
    allocations: dict[str, Obj] = field(default_factory=dict)


@dataclass
class Case:
    name: str  # "<cluster>-<number>"
    theme: str
    objects: list[Obj]
    pod: Obj
    config: Obj
    start_index: int  # where in the node order the search began; -1 when that cannot be known
    decision: Decision
    kubernetes: str  # the minor of the kube-scheduler that decided it

    @property
    def pod_key(self) -> str:
        return f"{self.pod['metadata']['namespace']}/{self.pod['metadata']['name']}"


def key_of(obj: Obj) -> str:
    """Kind, namespace and name in one string."""
    metadata = obj["metadata"]
    return f"{obj['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def without_chance(allocation: Obj) -> Obj:
    """An allocation without the identifiers of shares and the time."""
    kept = {name: value for name, value in allocation.items() if name != "allocationTimestamp"}
    devices = kept.get("devices", {})
    if devices.get("results"):
        kept["devices"] = {**devices, "results": [_result_without_chance(each) for each in devices["results"]]}
    return kept


def _result_without_chance(result: Obj) -> Obj:
    kept = {name: value for name, value in result.items() if name != "shareID"}
    if "consumedCapacity" in kept:  # the API server writes amounts in its own way
        kept["consumedCapacity"] = {name: parse(amount) for name, amount in kept["consumedCapacity"].items()}
    return kept


def save_case(case: Case, folder: Path, differences: list[str]) -> None:
    """Write cluster.yaml (objects and pod), config.yaml, expected.json and differences.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    documents = [_without_managed_fields(each) for each in [*case.objects, case.pod]]
    (folder / "cluster.yaml").write_text(yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False))
    (folder / "config.yaml").write_text(yaml.safe_dump(case.config, sort_keys=False))
    decided = {"pod": case.pod_key, "startIndex": case.start_index}
    expected = {**decided, "theme": case.theme, "kubernetes": case.kubernetes, **asdict(case.decision)}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    command = f"podium explain {case.pod_key} --from {folder}/cluster.yaml --config {folder}/config.yaml"
    (folder / "differences.txt").write_text("\n".join([command, "", *differences, ""]))


class _TextLoader(yaml.CSafeLoader):
    """Leaves times as the text they are in the API."""


_TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def load_case(folder: Path) -> Case:
    """The case that `save_case` wrote."""
    *objects, pod = yaml.load_all((folder / "cluster.yaml").read_text(), Loader=_TextLoader)
    expected = json.loads((folder / "expected.json").read_text())
    del expected["pod"]
    return Case(
        name=folder.name,
        objects=objects,
        pod=pod,
        config=yaml.safe_load((folder / "config.yaml").read_text()),
        start_index=expected.pop("startIndex"),
        theme=expected.pop("theme"),
        kubernetes=expected.pop("kubernetes", "1.36"),
        decision=Decision(**expected),
    )


def _without_managed_fields(obj: Obj) -> Obj:
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}

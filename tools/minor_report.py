"""Says what changed between two versions of Kubernetes in what a scheduler has to know.

    python -m tools.minor_report v1.36.4 v1.37.1            # feature gates, plugins, configuration, metrics, API, texts
    python -m tools.minor_report v1.37.1 v1.38.0 -o json
    python -m tools.minor_report v1.36.4 v1.37.1 --binaries # also flags, metrics and configz of the built programs

The sources come from the Go module proxy. Where the test bed has both versions, `--binaries` asks the programs
themselves: their `--help`, and `/metrics` and `/configz` of a running kube-scheduler. Whoever adds a minor starts from
this list: each line is a fact that has a place in `podium/kube/versions`, or needs none.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.testbed.availability import TestbedUnavailable
from tools.testbed.build import KUBERNETES, fetch_module, programs
from tools.testbed.cluster import ControlPlane

Facts = dict[str, str]
"""What is there, by name, with what may change about it."""

_GATES = re.compile(r"^\t(?:\w+\.)?(\w+): \{\n((?:\t\t\{.*\},?\n)+)\t\},$", re.MULTILINE)
_STAGE = re.compile(r'\{Version: version\.MustParse\("([\d.]+)"\), Default: (\w+)(.*)\}')
_METRIC = re.compile(r'\bName:\s*"(\w+)",(?:(?!\bName:).)*?StabilityLevel:\s*metrics\.(\w+)', re.DOTALL)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^\t(?:\w+[ \t]+)?([\w.*\[\]]+)[ \t]+`[^`\n]*json:"([^",]+)', re.MULTILINE)
_PLUGIN = re.compile(r"\{Name: names\.(\w+)(?:, Weight: ptr\.To\[int32\]\((\d+)\))?\}")
_TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*[a-z] (?:[^"\\\n]|\\.)*)"')
_HELP = re.compile(r"^ {6}--([\w-]+)|^ +-\w, --([\w-]+)", re.MULTILINE)
_SERVED = re.compile(r"^# TYPE (\w+) (\w+)$", re.MULTILINE)
API_GROUPS = ("core/v1", "resource/v1", "storage/v1", "scheduling/v1", "scheduling/v1beta1", "policy/v1")


def feature_gates(kubernetes: Path) -> Facts:
    """Each gate with its last stage and default."""
    found: Facts = {}
    for source in ("pkg/features/kube_features.go",):
        for gate in _GATES.finditer((kubernetes / source).read_text()):
            stages = _STAGE.findall(gate[2])
            if stages:
                version, default, rest = stages[-1]
                stage = re.search(r"featuregate\.(\w+)", rest)
                locked = ", locked" if "LockToDefault: true" in rest else ""
                found[gate[1]] = f"{stage[1] if stage else 'Alpha'} since {version}, {_switch(default)}{locked}"
    return found


def _switch(default: str) -> str:
    return "on" if default == "true" else "off"


def default_plugins(kubernetes: Path) -> Facts:
    """The plugins of the default profile, in order, with their weights."""
    text = (kubernetes / "pkg/scheduler/apis/config/v1/default_plugins.go").read_text()
    places = enumerate(dict.fromkeys(_PLUGIN.findall(text)), 1)
    return {name: f"place {place}, weight {weight or 'none'}" for place, (name, weight) in places}


def configuration(kubernetes: Path) -> Facts:
    """The fields of KubeSchedulerConfiguration and of the plugins' arguments."""
    folder = Path(fetch_module("k8s.io/kube-scheduler", _staging(kubernetes), of="Dir"))
    return _fields(sorted((folder / "config/v1").glob("types*.go")))


def api_fields(kubernetes: Path) -> Facts:
    """The fields of the API types that a scheduler reads."""
    folder = Path(fetch_module("k8s.io/api", _staging(kubernetes), of="Dir"))
    found: Facts = {}
    for group in API_GROUPS:
        fields = _fields(sorted((folder / group).glob("types*.go")))
        found |= {f"{group} {name}": kind for name, kind in fields.items()}
    return found


def _fields(sources: list[Path]) -> Facts:
    return {
        f"{struct[1]}.{name}": kind
        for source in sources
        for struct in _STRUCT.finditer(source.read_text())
        for kind, name in _FIELD.findall(struct[2])
    }


def metrics(kubernetes: Path) -> Facts:
    """The scheduler's own metrics with their stability."""
    text = (kubernetes / "pkg/scheduler/metrics/metrics.go").read_text()
    return dict(_METRIC.findall(text))


def texts(kubernetes: Path) -> Facts:
    """Sentences in the scheduler's sources, and where they stand: reasons, messages, errors, log lines."""
    found: Facts = {}
    dra = Path(fetch_module("k8s.io/dynamic-resource-allocation", _staging(kubernetes), of="Dir"))
    for folder in (kubernetes / "pkg/scheduler", dra / "structured"):
        for source in sorted(folder.rglob("*.go")):
            if source.name.endswith("_test.go") or "testing" in source.parts:
                continue
            code = re.sub(r"^\s*//.*$", "", source.read_text(), flags=re.MULTILINE)
            found.update(dict.fromkeys(_TEXT.findall(code), str(source.relative_to(folder))))
    return found


def _staging(kubernetes: Path) -> str:
    """The version of the staging modules that were published with the sources in a folder."""
    return kubernetes.name.partition("@v1.")[2].join(("v0.", ""))


SECTIONS: dict[str, Callable[[Path], Facts]] = {
    "feature gates": feature_gates,
    "default plugins": default_plugins,
    "configuration": configuration,
    "metrics": metrics,
    "API fields": api_fields,
    "texts": texts,
}


def of_binaries(version: str) -> dict[str, Facts]:
    """What the built kube-scheduler says of itself; TestbedUnavailable where the test bed lacks the version."""
    minor = next((minor for minor, known in KUBERNETES.items() if known == version), None)
    if minor is None:
        raise TestbedUnavailable(f"kube-scheduler {version}", f"the test bed has {', '.join(KUBERNETES.values())}")
    program = programs(f"kubernetes-{minor}")["kube-scheduler"]
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    with ControlPlane(kubernetes=minor) as plane:
        scheduler = plane.start_scheduler()
        served, configz = _ask(plane, scheduler.url, "/metrics"), _ask(plane, scheduler.url, "/configz")
    return {
        "flags": {one or other: "" for one, other in _HELP.findall(told)},
        "/metrics": dict(_SERVED.findall(served)),
        "/configz": dict(_flat(json.loads(configz))),
    }


def _ask(plane: ControlPlane, url: str, path: str) -> str:
    from tools.testbed.connections import ConnectionPool

    pool = ConnectionPool(url, ca_path=plane.ca_path, headers={"Authorization": f"Bearer {plane.token}"})
    try:
        return bytes(pool.request("GET", path).body).decode()
    finally:
        pool.close()


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            key = inner.get("name", number) if isinstance(inner, dict) else number
            yield from _flat(inner, f"{path}[{key}]")
    elif "kubeconfig" not in path.lower() and "Address" not in path:
        yield path, str(value)


def changes(before: Facts, after: Facts) -> dict[str, dict[str, Any]]:
    """What is new, what is gone, and what became otherwise."""
    both = before.keys() & after.keys()
    return {
        "added": {name: after[name] for name in sorted(after.keys() - before.keys())},
        "removed": {name: before[name] for name in sorted(before.keys() - after.keys())},
        "changed": {name: [before[name], after[name]] for name in sorted(both) if before[name] != after[name]},
    }


def report(before: str, after: str, *, binaries: bool = False) -> dict[str, dict[str, dict[str, Any]]]:
    """The changes by section."""
    old, new = (Path(fetch_module("k8s.io/kubernetes", version, of="Dir")) for version in (before, after))
    found = {name: changes(read(old), read(new)) for name, read in SECTIONS.items()}
    for each in found["texts"].values():  # a sentence that only moved to another file is the same sentence
        if each is found["texts"]["changed"]:
            each.clear()
    if binaries:
        told, tells = of_binaries(before), of_binaries(after)
        found |= {name: changes(told[name], tells[name]) for name in told}
    return found


def _print(found: dict[str, dict[str, dict[str, Any]]]) -> None:
    for section, parts in found.items():
        print(f"\n{section}: " + ", ".join(f"{len(names)} {part}" for part, names in parts.items()))
        for part, names in parts.items():
            sign = {"added": "+", "removed": "-", "changed": "~"}[part]
            for name, fact in names.items():
                shown = " → ".join(fact) if isinstance(fact, list) else fact
                print(f"  {sign} {name}{f': {shown}' if shown else ''}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.minor_report", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", help="the older version, as v1.36.4")
    parser.add_argument("after", help="the newer version, as v1.37.1")
    parser.add_argument("--binaries", action="store_true", help="also ask the programs that the test bed builds")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    for version in (options.before, options.after):
        if re.fullmatch(r"v1\.\d+\.\d+", version) is None:
            parser.error(f"{version!r} is no release of Kubernetes; write it as v1.37.1")
    try:
        found = report(options.before, options.after, binaries=options.binaries)
    except (TestbedUnavailable, RuntimeError) as error:
        print(f"minor_report: {error}", file=sys.stderr)
        return 1
    if options.output == "json":
        print(json.dumps(found, indent=1))
    else:
        _print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())

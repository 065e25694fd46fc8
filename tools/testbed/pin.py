"""Writes the go.mod and go.sum of one Kubernetes version for the test bed.

k8s.io/kubernetes is not meant to be required by other modules: it names its staging modules (k8s.io/api and the
rest) v0.0.0 and replaces them by folders of its own repository. So the go.mod written here requires the version and
replaces every staging module by the version that was published with it; Go then resolves and checks the rest.

    python -m tools.testbed.pin v1.37.1      # writes tools/testbed/kubernetes-1.37/go.mod and go.sum
"""

import re
import subprocess
import sys
from pathlib import Path

from tools.testbed.build import fetch_module, go_command, run_go

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

_VERSION = re.compile(r"v1\.(\d+)\.(\d+)")
_STAGING = re.compile(r"^\t(k8s\.io/\S+) => \./staging/", re.MULTILINE)
_GO = re.compile(r"^go (\S+)$", re.MULTILINE)
_GODEBUG = re.compile(r"^godebug default=(\S+)$", re.MULTILINE)


def go_mod(version: str, own: str) -> str:
    """The text of the test bed's go.mod for a version of Kubernetes whose own go.mod is given."""
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} is no version of Kubernetes; write it as v1.37.1")
    minor, patch = match.groups()
    go = _GO.search(own)
    godebug = _GODEBUG.search(own)
    lines = [
        "// The Kubernetes components of the test bed, as tools of one pinned module.",
        "// Written by `python -m tools.testbed.pin`.",
        f"module podium.test/testbed/kubernetes-1.{minor}",
        "",
        f"go {go[1] if go else '1.26.0'}",
        "",
        *([f"godebug default={godebug[1]}", ""] if godebug else []),
        "tool (",
        *(f"\tk8s.io/kubernetes/cmd/{name}" for name in COMPONENTS),
        ")",
        "",
        f"require k8s.io/kubernetes {version}",
        "",
        "replace (",
        *(f"\t{name} => {name} v0.{minor}.{patch}" for name in _STAGING.findall(own)),
        ")",
        "",
    ]
    return "\n".join(lines)


def pin(version: str) -> Path:
    """Write the module's folder and have Go resolve it; returns the folder."""
    own = Path(fetch_module("k8s.io/kubernetes", version, of="GoMod")).read_text()
    text = go_mod(version, own)
    folder = Path(__file__).parent / f"kubernetes-{version.removeprefix('v').rpartition('.')[0]}"
    folder.mkdir(exist_ok=True)
    (folder / "go.mod").write_text(text)
    (folder / "go.sum").unlink(missing_ok=True)
    result = run_go([go_command(), "mod", "tidy"], folder)
    if result.returncode != 0:
        raise RuntimeError(f"go mod tidy in {folder} failed:\n{result.stderr[-4000:]}")
    return folder


def main(arguments: list[str] | None = None) -> int:
    """Write the module of each version named; 1 with the reason where Go cannot resolve one, 2 for a wrong version."""
    versions = sys.argv[1:] if arguments is None else arguments
    if not versions or any(_VERSION.fullmatch(version) is None for version in versions):
        print("usage: python -m tools.testbed.pin v1.37.1 [v1.36.4 …]", file=sys.stderr)
        return 2
    try:
        for version in versions:
            print(pin(version))
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(f"pin: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

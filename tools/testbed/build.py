"""Builds the real components that the tests run against, once per machine: Kubernetes, etcd, Prometheus, Helm.

Each folder beside this file that holds a go.mod pins one group of programs as Go tools. A group is built when a test
first asks for it and kept in the user's cache folder under a hash of everything that decides the result (go.mod,
go.sum, linker flags, Go version), so a changed pin builds again and an unchanged one never does. The finished folder
appears in one rename, and a file lock makes a second process wait for the first rather than build as well.

    python -m tools.testbed.build                    # build what is missing, print where the programs are
    python -m tools.testbed.build kubernetes-1.35    # one module, also of a Kubernetes that only parity uses
"""

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tools.testbed.availability import TestbedUnavailable

# The minors that Podium decides like, and the release of each that it is compared with. One folder each:
# `python -m tools.testbed.pin VERSION` writes it. Tests run on the first, unless $KUBERNETES names another.
KUBERNETES = {"1.37": "v1.37.1", "1.36": "v1.36.4", "1.35": "v1.35.4"}
MINOR = os.environ.get("KUBERNETES") or next(iter(KUBERNETES))
if MINOR not in KUBERNETES:
    raise SystemExit(f"KUBERNETES={MINOR}: the test bed has {', '.join(KUBERNETES)}; write one of them")
KUBERNETES_VERSION = KUBERNETES[MINOR]


class Module(NamedTuple):
    """One go.mod of the test bed: the programs it makes, under the names the tests call them by."""

    folder: str  # beside this file, or absolute
    programs: dict[str, str]  # the name Go gives the binary -> the name it is kept under
    linker_flags: tuple[str, ...]
    minutes: str


def _version_flags(version: str) -> tuple[str, ...]:
    # Kubernetes' own release build sets these; without them every component calls itself v0.0.0-master.
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return tuple(f"-X={package}.{name}={value}" for package in packages for name, value in values.items())


def _kubernetes(minor: str, version: str) -> Module:
    return Module(
        folder=f"kubernetes-{minor}",
        programs={name: name for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")},
        linker_flags=("-s", "-w", *_version_flags(version)),
        minutes="about five minutes on two cores",
    )


# In this order they are built: most tests wait for the first two.
MODULES = {
    "etcd": Module(
        folder="etcd",
        programs={"server": "etcd"},
        linker_flags=("-s", "-w"),
        minutes="about half a minute",
    ),
    f"kubernetes-{MINOR}": _kubernetes(MINOR, KUBERNETES_VERSION),
    "helm": Module(
        folder="helm",
        programs={"helm": "helm"},
        linker_flags=("-s", "-w"),
        minutes="about two minutes on two cores",
    ),
    # Its pages are left out (they need Node.js to build); the API does without them.
    "prometheus": Module(
        folder="prometheus",
        programs={name: name for name in ("prometheus", "promtool", "node_exporter")},
        linker_flags=("-s", "-w"),
        minutes="about four minutes on two cores",
    ),
}

# Built only where one is asked for by name.
OTHER_KUBERNETES = {
    f"kubernetes-{minor}": _kubernetes(minor, version) for minor, version in KUBERNETES.items() if minor != MINOR
}

# What a comparison asks for by name. The program takes what it does from the name that it is called by.
OTHERS = OTHER_KUBERNETES | {
    "cluster-capacity": Module(
        folder="cluster-capacity",
        programs={"hypercc": "cluster-capacity"},
        linker_flags=("-s", "-w"),
        minutes="about five minutes on two cores",
    )
}

CONTROL_PLANE = (f"kubernetes-{MINOR}", "etcd")
MEASURED_LOAD = ("prometheus",)
CHARTS = ("helm",)


def programs(*modules: str) -> dict[str, Path]:
    """The path of every program of these modules by name; built first where the cache lacks it.

    Without arguments: all that tests need, so one Kubernetes only.
    """
    known = MODULES | OTHERS
    built = [(build_module(known[name]), known[name]) for name in modules or MODULES]
    return {name: folder / name for folder, module in built for name in module.programs.values()}


def build_module(module: Module) -> Path:
    """The cache folder that holds the module's programs; builds them unless they are there."""
    go = go_command()
    source = Path(__file__).parent / module.folder
    target = cache_folder() / f"{source.name}-{_fingerprint(go, source, module)}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with only_one_process(target.with_suffix(".lock")):
        if not target.is_dir():  # another process may have finished it while this one waited
            _build_into(target, go, source, module)
    return target


def is_built(minor: str) -> bool:
    """Whether the cache has the components of a Kubernetes minor; nothing is built."""
    module = (MODULES | OTHERS)[f"kubernetes-{minor}"]
    source = Path(__file__).parent / module.folder
    go = shutil.which("go")
    return go is not None and (cache_folder() / f"{source.name}-{_fingerprint(go, source, module)}").is_dir()


def cache_folder() -> Path:
    """Where built programs are kept: `$XDG_CACHE_HOME/podium/testbed`, by default under ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "podium" / "testbed"


def _build_into(target: Path, go: str, source: Path, module: Module) -> None:
    names = ", ".join(module.programs.values())
    say(f"building {names}: {module.minutes}, only this once")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
        _fetch_sources(go, source, module)
        flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags={' '.join(module.linker_flags)}"]
        result = run_go([go, "build", *flags, "-o", f"{scratch}/built/", "tool"], source)
        if result.returncode != 0:
            raise RuntimeError(f"go build in {source} failed:\n{result.stderr[-4000:]}")
        built = Path(scratch) / "built"
        for made, kept in module.programs.items():
            (built / made).rename(built / kept)
        built.rename(target)
    say(f"built {names} in {time.monotonic() - began:.0f} s, kept in {target}")


def _fetch_sources(go: str, source: Path, module: Module) -> None:
    # Listing the dependencies downloads exactly what the build will read. A failure here is the network or a Go that
    # is too old; a failure after it is a broken build, which must not pass as "not available".
    result = run_go([go, "list", "-mod=readonly", "-deps", "-f", "", "tool"], source)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if not line.startswith("go: downloading ")]
        reason = " ".join(lines[-1].split()) if lines else f"go list ended with {result.returncode}"
        raise TestbedUnavailable(f"Go modules of {module.folder}", f"their sources could not be downloaded ({reason})")


def fetch_module(path: str, version: str, *, of: str) -> str:
    """Download a module; `of` says which of its paths is wanted: its folder (Dir) or its own go.mod (GoMod)."""
    with tempfile.TemporaryDirectory() as anywhere:
        result = run_go([go_command(), "mod", "download", "-json", f"{path}@{version}"], Path(anywhere))
    found: dict[str, str] = json.loads(result.stdout or "{}")
    if "Error" in found or of not in found:
        reason = found.get("Error") or " ".join(result.stderr.split())
        raise RuntimeError(f"{path}@{version} cannot be downloaded: {reason}")
    return found[of]


def run_go(command: list[str], source: Path) -> "subprocess.CompletedProcess[str]":
    """Run a Go command in a folder, at low priority and without cgo or a workspace."""
    environment = os.environ | {"GOWORK": "off", "CGO_ENABLED": "0"}
    # The tests' machine stays usable while a five-minute build has all of its cores.
    if nice := shutil.which("nice"):
        command = [nice, *command]
    return subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)


def _fingerprint(go: str, source: Path, module: Module) -> str:
    version = run_go([go, "env", "GOVERSION", "GOOS", "GOARCH"], source).stdout
    digest = hashlib.sha256()
    for part in (
        (source / "go.mod").read_bytes(),
        (source / "go.sum").read_bytes(),
        " ".join(module.linker_flags).encode(),
        repr(module.programs).encode(),
        version.encode(),
    ):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


def go_command() -> str:
    """The path of the `go` command."""
    go = shutil.which("go")
    if go is None:
        raise TestbedUnavailable(
            "Go", "no `go` command is on the PATH; install Go 1.26 or newer from https://go.dev/dl"
        )
    return go


@contextmanager
def only_one_process(lock: Path) -> Iterator[None]:
    """Hold a lock while something is built; a second process waits for the first."""
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is building; waiting for it")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def say(sentence: str) -> None:
    print(f"test bed: {sentence}", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Build what is named, or all that tests need; print a `name path` line for each program.

    Returns 1 with the reason where that cannot be.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.testbed.build", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"one of {', '.join(MODULES | OTHERS)}")
    names = parser.parse_args(arguments).modules
    if unknown := [name for name in names if name not in MODULES | OTHERS]:
        parser.error(f"no module is called {unknown[0]}")
    try:
        found = programs(*names)
    except TestbedUnavailable as unavailable:
        say(str(unavailable))
        return 1
    for name, path in found.items():
        print(f"{name} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

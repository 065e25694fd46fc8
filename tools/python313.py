"""Runs the tests that need only Python on Python 3.13, which the image ships, and measures what they cover.

Python comes from Debian's packages, by mmdebstrap, into a folder of the user's cache that is made once; the packages
are those of requirements.lock, in an environment beside it. The tests run in a root of their own (chroot), in which
this checkout lies where it lies outside. Coverage costs little here: 3.13 says which lines ran without being traced.

    make python313 TESTS=tests/podium/kube
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SUITE: Final = "trixie"
VERSION: Final = "3.13"
PACKAGES: Final = ("python3", "python3-venv", "ca-certificates", "libstdc++6", "git", "procps", "iproute2")
LEFT_OUT: Final = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
SHARED: Final = ("/etc/ssl", "/etc/resolv.conf", "/etc/hosts", "/usr/local/share/ca-certificates", "/opt")
"""What the machine knows of its network, and may need to reach a package index."""


def main() -> int:
    if reason := missing():
        print(f"Python {VERSION} was not tested: {reason}", file=sys.stderr)
        return 1 if os.environ.get("PODIUM_REQUIRE_TESTBED") == "1" else 0
    root = made_root()
    environment = f"{ROOT}/build/python313"
    tests = sys.argv[1:] or ["tests"]
    uv, python = f"{ROOT}/.venv/bin/uv", f"{environment}/bin/python"
    locks = "requirements.lock requirements-uv.lock"
    install = (
        f"test -x {python} || {uv} venv --quiet --seed --python /usr/bin/python{VERSION} {environment}; "
        f"{uv} pip sync --quiet --python {python} --require-hashes {locks} && "
        f"{uv} pip install --quiet --python {python} --no-deps --no-build-isolation -e . -e tools"
    )
    suite = (
        f"{python} -m coverage run -m pytest -n {os.environ.get('WORKERS', '2')} -m 'not testbed and not long' "
        f"-o cache_dir=build/pytest313 {os.environ.get('SECOND_TRY', '')} {shlex.join(tests)}"
    )
    data = {"COVERAGE_CORE": "sysmon", "COVERAGE_FILE": f"{environment}/.coverage", "PODIUM_EXAMPLES": "all"}
    for step in (install, suite):
        if code := in_root(root, step, data):
            return code
    measured = f"{environment}/coverage.json"
    report = f"{python} -m coverage combine --quiet && {python} -m coverage json --quiet --fail-under=0 -o {measured}"
    if code := in_root(root, report, data):
        return code
    print_by_package(json.loads(Path(measured).read_text()))
    # The floor stands in pyproject.toml; only the whole of the tests reaches it.
    return in_root(root, f"{python} -m coverage report --format=total", data) if not sys.argv[1:] else 0


def missing() -> str:
    """What keeps this machine from running them; empty: nothing."""
    absent = [name for name in ("mmdebstrap", "unshare", "chroot") if shutil.which(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)} (Debian has packages for them)"
    return "" if os.geteuid() == 0 else "only root can make a root from packages"


def made_root() -> Path:
    """The folder with Debian's Python, made where the cache lacks it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podium"
    what = hashlib.sha256(repr((SUITE, PACKAGES, LEFT_OUT)).encode()).hexdigest()[:12]
    target = cache / f"python-{VERSION}-{what}"
    if not target.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        print(f"making a root with Python {VERSION} from Debian's packages: about a minute, only this once", flush=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=cache) as scratch:
            excluded = [f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT]
            packages = f"--include={','.join(PACKAGES)}"
            made = Path(scratch) / "root"
            subprocess.run(
                ["mmdebstrap", "--quiet", "--variant=essential", packages, *excluded, SUITE, str(made)], check=True
            )
            made.rename(target)
    return target


def in_root(root: Path, command: str, variables: dict[str, str]) -> int:
    """The exit status of a shell command in that root; what is mounted for it goes with it."""
    with tempfile.TemporaryDirectory(prefix="podium-root-") as scratch:
        mounts = [f"mount --rbind /{name} {root}/{name}" for name in ("proc", "dev", "sys")]
        for path in (str(ROOT), *(each for each in SHARED if Path(each).exists())):
            inside = f"{root}{path}"
            making = f"mkdir -p {inside}" if Path(path).is_dir() else f"mkdir -p {Path(inside).parent}; touch {inside}"
            mounts += [making, f"mount --bind {path} {inside}"]
        for name in ("tmp", "root"):
            folder = Path(scratch) / name
            folder.mkdir(mode=0o1777 if name == "tmp" else 0o700)
            folder.chmod(0o1777 if name == "tmp" else 0o700)
            mounts.append(f"mount --bind {folder} {root}/{name}")
        inner = f"cd {ROOT} && {command}"
        script = " && ".join([*mounts, f"exec chroot {root} /bin/sh -c {shlex.quote(inner)}"])
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        environment = {**os.environ, "HOME": "/root", "PATH": path, **variables}
        for name in ("TMPDIR", "VIRTUAL_ENV", "XDG_CACHE_HOME", "PYTHONPATH", "PODIUM_REQUIRE_TESTBED"):  # no Go there
            environment.pop(name, None)
        return subprocess.run(["unshare", "--mount", "sh", "-ec", script], env=environment, check=False).returncode


def print_by_package(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> None:
    lines: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, found in report["files"].items():
        parts = Path(name).parts[1:3]
        package = "/".join(parts if not parts[-1].endswith(".py") else parts[:1])
        lines[package][0] += found["summary"]["covered_lines"]
        lines[package][1] += found["summary"]["num_statements"]
    print(f"\n{'package':32} {'statements':>10} {'covered':>8}")
    for package, (covered, statements) in sorted(lines.items()):
        print(f"{package:32} {statements:10} {100 * covered / max(statements, 1):7.1f} %")


if __name__ == "__main__":
    sys.exit(main())

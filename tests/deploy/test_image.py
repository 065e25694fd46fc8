"""The image: built without a daemon on a base of Debian packages, run without rights on a read-only file system.

It takes minutes, and is skipped where the programs for it are not installed.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.container import ROOT, Containers, missing
from tests.podium.run.crowd import until
from tools.testbed import ControlPlane, TestbedUnavailable
from tools.testbed.availability import skip_or_fail
from tools.testbed.connections import ConnectionPool
from tools.testbed.objects import make_node, make_pod
from tools.testbed.ports import LOOPBACK, free_port

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MOST_ADDED = 150e6
"""Bytes that Podium and its packages may add to a base."""
UNWANTED = ("cc", "gcc", "g++", "ld", "make", "pip", "pip3", "git", "curl")

wanted = pytest.mark.testbed


@pytest.fixture(scope="module")
def containers() -> Iterator[Containers]:
    if reason := missing():
        skip_or_fail(TestbedUnavailable("the image", reason))
    with tempfile.TemporaryDirectory(prefix="podium-", ignore_cleanup_errors=True) as folder:
        found = Containers(Path(folder))  # podman takes no path of more than 50 characters
        for name in ("base", "builder"):
            found.import_base(name)
        yield found
        found.remove()


@pytest.fixture(scope="module")
def image(containers: Containers) -> str:
    return containers.build("localhost/podium", COMMIT)


@wanted
def test_it_says_what_it_is_on_a_read_only_file_system(containers: Containers, image: str) -> None:
    ran = containers.run(image, "--version")
    assert re.fullmatch(r"podium \S+ \(0123456789ab\), decides as kube-scheduler v1\.36\.\d+\n", ran.stdout), ran.stderr


@wanted
def test_podium_is_on_its_path(containers: Containers, image: str) -> None:
    """As for `kubectl exec … -- podium qos`."""
    ran = containers.run(image, "qos", entrypoint="podium")
    assert ran.returncode == 2
    assert ran.stderr.startswith("--url http://127.0.0.1:10000/: "), ran.stderr


@wanted
def test_it_runs_as_nobody_and_can_write_nowhere(containers: Containers, image: str) -> None:
    program = (
        "import os; print(os.getuid(), os.getgid()); "
        "print([each for each in ('/', '/tmp', '/opt/podium', '/var') if os.access(each, os.W_OK)])"
    )
    ran = containers.run(image, "-c", program, entrypoint="python3")
    assert ran.stdout == "65532 65532\n[]\n", ran.stderr


@wanted
def test_it_has_no_compiler_and_no_installer(containers: Containers, image: str) -> None:
    program = f"import shutil; print([name for name in {UNWANTED!r} if shutil.which(name)])"
    assert containers.run(image, "-c", program, entrypoint="python3").stdout == "[]\n"
    assert containers.run(image, "-m", "pip", entrypoint="python3").returncode == 1


@wanted
def test_it_is_small(containers: Containers, image: str) -> None:
    base, whole = (containers.inspect(name)["Size"] for name in ("localhost/base", image))
    print(f"\nbase {base / 1e6:.0f} MB, image {whole / 1e6:.0f} MB")
    assert whole - base < MOST_ADDED


@wanted
def test_the_same_sources_make_the_same_image(containers: Containers, image: str) -> None:
    again = containers.build("localhost/podium-again", COMMIT)
    assert containers.inspect(again)["RootFS"]["Layers"] == containers.inspect(image)["RootFS"]["Layers"]


@wanted
def test_it_schedules_a_cluster(containers: Containers, image: str, empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    plane.client.create_all([make_node("only"), make_pod("web", cpu="1")])
    kubeconfig = plane.write_kubeconfig(plane.folder / "container.kubeconfig", token=plane.token)
    for file in (plane.folder, kubeconfig):
        file.chmod(0o755)
    port = free_port()
    flags = ["run", f"--kubeconfig={kubeconfig}", f"--secure-port={port}", f"--bind-address={LOOPBACK}"]
    command = containers.command(image, *flags, options=(f"--volume={plane.folder}:{plane.folder}:ro",))
    began = time.monotonic()
    podium = plane.start_program(
        "podium-container", [shutil.which(command[0]) or command[0], *command[1:]], ready="podium runs", timeout=120.0
    )
    seconds = time.monotonic() - began
    pool = ConnectionPool(f"https://{LOOPBACK}:{port}", ca_path=None, timeout=5.0)
    until(lambda: pool.request("GET", "/readyz").status == 200, "it is ready", podium)
    pool.close()
    until(lambda: plane.client.get("Pod", "web")["spec"].get("nodeName") == "only", "the pod is bound", podium)
    print(f"\nfrom podman run to scheduling: {seconds:.1f} s")
    podium.stop()


@pytest.mark.parametrize("file", ["requirements.lock", "tools.lock"])
def test_its_packages_are_those_of_the_lock(file: str) -> None:
    """With the same hashes: `make lock` writes all of them."""
    whole = _pinned(ROOT / "requirements.lock")
    part = _pinned(ROOT / "deploy/image" / file)
    assert part
    assert {name: pins for name, pins in part.items() if whole.get(name) != pins} == {}


def _pinned(lock: Path) -> dict[str, str]:
    entries = re.split(r"\n(?=\S)", lock.read_text().strip())
    return {entry.partition("==")[0]: entry for entry in entries}

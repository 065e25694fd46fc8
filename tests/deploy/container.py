"""Builds and runs the image without a daemon: a base made from Debian packages, buildah to build, podman to run.

Everything is kept in a folder of its own, but for the two bases, which take minutes to make and stay in the cache.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools.testbed.build import cache_folder

ROOT: Final = Path(__file__).parents[2]
SUITE: Final = "trixie"
PACKAGES: Final = {
    "base": ("python3", "ca-certificates", "libstdc++6"),
    "builder": ("python3", "ca-certificates", "libstdc++6", "python3-pip"),
}
LEFT_OUT: Final = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
PROGRAMS: Final = ("mmdebstrap", "buildah", "podman", "runc")
LIMITS: Final = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096")
"""Explicit, for raising them is not allowed everywhere."""
HARDENED: Final = (
    "--network=host",
    "--read-only",
    "--read-only-tmpfs=false",
    "--cap-drop=all",
    "--security-opt=no-new-privileges",
    *LIMITS,
)


def missing() -> str:
    """What keeps this machine from building images; empty: nothing."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)} (Debian has packages of these names)"
    return "" if os.geteuid() == 0 else "only root can make a base from packages"


class Containers(NamedTuple):
    """Images and containers in a folder of their own."""

    folder: Path

    def _storage(self) -> list[str]:
        return ["--root", str(self.folder / "images"), "--runroot", str(self.folder / "state")]

    def import_base(self, name: str) -> str:
        """The image of a base, made from packages where the cache lacks it."""
        tree = _base(name)
        container = self._buildah("from", "scratch")
        self._buildah("add", "--quiet", container, str(tree), "/")
        self._buildah("commit", "--quiet", container, f"localhost/{name}")
        self._buildah("rm", container)
        return f"localhost/{name}"

    def build(self, name: str, commit: str) -> str:
        """The image as deploy/image/Containerfile describes it; from the start, so that two builds can be compared."""
        arguments = {"BASE": "localhost/base", "BUILDER": "localhost/builder", "COMMIT": commit}
        self._buildah(
            "build",
            "--isolation=chroot",
            "--network=host",
            "--no-cache",
            "--timestamp=0",
            "--volume=/etc/ssl/certs:/etc/ssl/certs:ro",  # this machine may reach its package index by a proxy
            *(f"--build-arg={key}={value}" for key, value in arguments.items()),
            f"--file={ROOT / 'deploy/image/Containerfile'}",
            f"--tag={name}",
            str(ROOT),
        )
        return name

    def inspect(self, image: str) -> dict[str, Any]:
        [found] = json.loads(self._podman("image", "inspect", image))
        about: dict[str, Any] = found
        return about

    def command(self, image: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
        """The command line that runs a container, with no rights and on a read-only file system."""
        run = ["podman", "--runtime=runc", *self._storage(), "run", "--rm", *HARDENED, *options]
        return [*run, image, *arguments]

    def run(self, image: str, *arguments: str, entrypoint: str = "") -> subprocess.CompletedProcess[str]:
        options = (f"--entrypoint={entrypoint}",) if entrypoint else ()
        command = self.command(image, *arguments, options=options)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def remove(self) -> None:
        """Remove all images, and the folder, in which the storage has mounted itself."""
        self._podman("rmi", "--all", "--force")
        subprocess.run(["umount", str(self.folder / "images" / "overlay")], capture_output=True, check=False)
        shutil.rmtree(self.folder)

    def _buildah(self, *arguments: str) -> str:
        return _output(["buildah", *self._storage(), *arguments])

    def _podman(self, *arguments: str) -> str:
        return _output(["podman", *self._storage(), *arguments])


def _base(name: str) -> Path:
    target = cache_folder().parent / "image" / f"{name}-{SUITE}.tar"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        made = target.with_suffix(".new.tar")
        excluded = [f"--dpkgopt=path-exclude={path}" for path in LEFT_OUT]
        packages = f"--include={','.join(PACKAGES[name])}"
        _output(["mmdebstrap", "--quiet", "--variant=essential", packages, *excluded, SUITE, str(made)])
        made.rename(target)
    return target


def _output(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{' '.join(command)}\n{ran.stdout[-3000:]}\n{ran.stderr[-6000:]}"
    return ran.stdout.strip()

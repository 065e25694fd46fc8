"""The real kubectl, run on a real API server or on the embedded one, and what it prints made comparable.

What depends on the moment or on chance (ages, times, uids, revisions, addresses, generated names) is put aside, and so
is how wide columns became because of it.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tools.testbed.build import CONTROL_PLANE, programs

_PUT_ASIDE = (
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b", "TIME"),
    (r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UID"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "TIME"),
    (r'(?<!cpu": ")(?<!cpu":")(?<!cpu: )(?<![\w.-])\d+[smhd](\d+[smhd])?(?![\w.-])', "AGE"),
    (r'(resourceVersion"?:) "\d+"', r"\1 REVISION"),
    (r"Resource Version: +\d+", "Resource Version: REVISION"),
    (r"\b3[0-2]\d{3}/", "NODE-PORT/"),
    (r"nodePort: 3[0-2]\d{3}\b", "nodePort: NODE-PORT"),
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"https?://(127\.0\.0\.1|localhost):\d+", "SERVER"),
    (r"/tmp/\S+", "FILE"),  # noqa: S108  what kubectl prints
    (r"[ \t]+", " "),
)


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    def comparable(self) -> "Ran":
        return Ran(self.code, comparable(self.out), comparable(self.err))


def comparable(text: str) -> str:
    for pattern, word in _PUT_ASIDE:
        text = re.sub(pattern, word, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


class Kubectl:
    """kubectl with a kubeconfig; `home` keeps its caches apart from everybody else's."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._program = str(programs(*CONTROL_PLANE)["kubectl"])
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "HOME": str(home)}

    def __call__(
        self, *arguments: str, stdin: str | None = None, folder: Path | None = None, editor: str = "true"
    ) -> Ran:
        ran = subprocess.run(
            [self._program, *arguments],
            input=stdin,
            cwd=folder,
            env={**self._environment, "KUBE_EDITOR": editor},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """kubectl that goes on; the caller ends it."""
        return subprocess.Popen(
            [self._program, *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def printed(ran: Ran, *, errors: Sequence[str] = ()) -> str:
    """What was printed by a call that must have worked, without a word on standard error but these."""
    unexpected = [line for line in ran.err.splitlines() if not any(known in line for known in errors)]
    assert (ran.code, unexpected) == (0, []), ran
    return ran.out

"""Runs the real helm on the chart of deploy/helm/podium."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tools.testbed import ControlPlane
from tools.testbed.build import CHARTS, programs

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "podium"
KUBERNETES = "1.36.4"


def helm(*arguments: str, kubeconfig: Path | None = None, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What helm prints; it keeps nothing outside `home`."""
    folder = str(home or "/nonexistent")
    environment = {**os.environ, "HELM_CACHE_HOME": folder, "HELM_CONFIG_HOME": folder, "HELM_DATA_HOME": folder}
    if kubeconfig is not None:
        environment["KUBECONFIG"] = str(kubeconfig)
    command = [str(programs(*CHARTS)["helm"]), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=180)


def templated(*options: str, namespace: str = "kube-system") -> list[dict[str, Any]]:
    """The objects that `helm template` gives."""
    ran = helm("template", "ours", str(CHART), "--namespace", namespace, "--kube-version", KUBERNETES, *options)
    assert ran.returncode == 0, ran.stderr
    return [each for each in yaml.safe_load_all(ran.stdout) if each]


class Release:
    """A release of the chart on a control plane; each command must succeed."""

    def __init__(self, plane: ControlPlane, home: Path, namespace: str = "kube-system") -> None:
        self._plane, self._home, self._namespace = plane, home, namespace

    def run(self, verb: str, *options: str) -> str:
        chart = [] if verb == "uninstall" else [str(CHART)]
        ran = helm(
            *(verb, "ours", *chart, "--namespace", self._namespace, *options),
            kubeconfig=self._plane.kubeconfig_path,
            home=self._home,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

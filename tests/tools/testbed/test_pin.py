"""The go.mod of a Kubernetes version: what it replaces, and that each folder is what the test bed builds."""

from pathlib import Path

import pytest

from tools.testbed import build
from tools.testbed.build import KUBERNETES
from tools.testbed.pin import go_mod, main

OWN = """module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require k8s.io/api v0.0.0

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kubectl => ./staging/src/k8s.io/kubectl
)
"""


def test_every_staging_module_is_replaced_by_what_was_published_with_the_version() -> None:
    text = go_mod("v1.38.2", OWN)
    assert "require k8s.io/kubernetes v1.38.2\n" in text
    assert "\tk8s.io/api => k8s.io/api v0.38.2\n\tk8s.io/kubectl => k8s.io/kubectl v0.38.2\n" in text
    assert "go 1.26.0\n" in text
    assert "godebug default=go1.26\n" in text


@pytest.mark.parametrize("version", ["1.37", "v1.37", "v2.0.0", "latest", ""])
def test_what_is_no_release_is_refused(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([version]) == 2
    assert "v1.37.1" in capsys.readouterr().err


@pytest.mark.parametrize("minor", KUBERNETES)
def test_each_minor_of_the_test_bed_has_a_folder_with_its_version(minor: str) -> None:
    text = (Path(build.__file__).parent / f"kubernetes-{minor}" / "go.mod").read_text()
    assert f"k8s.io/kubernetes {KUBERNETES[minor]}" in text

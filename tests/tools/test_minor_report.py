"""The report of what a new minor changes: facts read out of small pieces of Go, and how two sets of them differ."""

from pathlib import Path

import pytest

from tools.minor_report import changes, default_plugins, feature_gates, main, metrics

GATES = """var defaultVersionedKubernetesFeatureGates = map[featuregate.Feature]featuregate.VersionedSpecs{
\tOldGate: {
\t\t{Version: version.MustParse("1.35"), Default: false, PreRelease: featuregate.Alpha},
\t\t{Version: version.MustParse("1.37"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
\t},
\tgenericfeatures.OtherGate: {
\t\t{Version: version.MustParse("1.36"), Default: false, PreRelease: featuregate.Beta},
\t},
}
"""
PLUGINS = """\t\t{Name: names.NodeName},
\t\t{Name: names.TaintToleration, Weight: ptr.To[int32](3)},
"""
METRICS = """\t\tName:           "batch_attempts_total",
\t\tHelp:           "Attempts.",
\t\tStabilityLevel: metrics.ALPHA,
"""


def sources(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_facts_are_read_from_go(tmp_path: Path) -> None:
    kubernetes = sources(
        tmp_path,
        **{
            "pkg/features/kube_features.go": GATES,
            "pkg/scheduler/apis/config/v1/default_plugins.go": PLUGINS,
            "pkg/scheduler/metrics/metrics.go": METRICS,
        },
    )
    assert feature_gates(kubernetes) == {
        "OldGate": "GA since 1.37, on, locked",
        "OtherGate": "Beta since 1.36, off",
    }
    assert default_plugins(kubernetes) == {
        "NodeName": "place 1, weight none",
        "TaintToleration": "place 2, weight 3",
    }
    assert metrics(kubernetes) == {"batch_attempts_total": "ALPHA"}


def test_changes_are_what_is_new_gone_or_otherwise() -> None:
    assert changes({"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "1", "d": "1"}) == {
        "added": {"d": "1"},
        "removed": {"a": "1"},
        "changed": {"b": ["1", "2"]},
    }


@pytest.mark.parametrize("version", ["1.37", "latest", "v1.37"])
def test_what_is_no_release_is_refused(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["v1.36.4", version])
    assert ended.value.code == 2
    assert "v1.37.1" in capsys.readouterr().err

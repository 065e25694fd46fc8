"""The race between two schedulers on a real API server, in small."""

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from tools.bench.binding_log import BindingLog
from tools.bench.e2e import UNLIMITED, Figures, Race, RaceComparison, RaceError, compare
from tools.bench.report import comparison_json, comparison_table
from tools.testbed import ControlPlane
from tools.testbed.audit import bindings


def a_race(scheduler: str, pods_per_s: float) -> Race:
    return Race(scheduler, pods_per_s, 2.6, 200.0, 10.0, 11.0, 1.0, 30.0, 100)


FOUND = RaceComparison(
    kube_scheduler=Figures(400.0, 2.5, 200.0),
    podium=Figures(1000.0, 0.5, 100.0),
    ratio=2.5,
    cpu_ratio=0.2,
    nodes=10,
    pods=100,
    rounds=[a_race("kube_scheduler", 350.0), a_race("podium", 1000.0), a_race("kube_scheduler", 450.0)],
)


def test_the_data_names_both_and_their_ratios() -> None:
    data = msgspec.json.decode(comparison_json(FOUND))
    assert data["kube_scheduler"] == {"pods_per_s": 400.0, "cpu_s_per_1000": 2.5, "peak_mb": 200.0}
    assert data["podium"] == {"pods_per_s": 1000.0, "cpu_s_per_1000": 0.5, "peak_mb": 100.0}
    assert (data["ratio"], data["cpu_ratio"]) == (2.5, 0.2)


def test_the_table_shows_medians_and_how_far_the_races_differed() -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(comparison_table(FOUND))
    theirs, ours, ratio = console.export_text().splitlines()[2:]
    assert theirs.split() == ["kube-scheduler", "400", "(350–450)", "2.50", "200", "100"]
    assert ours.split() == ["Podium", "1,000", "0.50", "100", "100"]
    assert ratio.split() == ["Podium", ":", "kube-scheduler", "2.50×", "0.20×", "0.50×"]


def test_bindings_are_counted_from_now_on_and_only_whole_lines(tmp_path: Path) -> None:
    def line(pod: str, second: int, code: int = 201) -> str:
        return (
            f'{{"objectRef":{{"name":"{pod}","subresource":"binding"}},"responseStatus":{{"code":{code}}},'
            f'"stageTimestamp":"1970-01-01T00:00:{second:02}.500000Z"}}\n'
        )

    path = tmp_path / "audit.log"
    path.write_text(line("before", 1))
    log = BindingLog(path)
    with path.open("a") as file:
        file.write(line("a", 2) + line("refused", 3, 409) + line("b", 4)[:-20])
        file.flush()
        assert log.count() == 1
        file.write(line("b", 4)[-20:])
        file.flush()
        assert log.count() == 2
    assert log.bound() == {"a": 2.5, "b": 4.5}


@pytest.mark.usefixtures("testbed_programs")
def test_each_scheduler_takes_its_turn_with_all_pods() -> None:
    phases: list[tuple[str, bool]] = []
    with ControlPlane(audit=True) as plane:
        found = compare(
            plane,
            {
                "kube_scheduler": lambda: plane.start_scheduler(UNLIMITED, verbosity=0),
                "podium": lambda: plane.start_podium(UNLIMITED),
            },
            nodes=10,
            pods=60,
            rounds=1,
            on_phase=lambda text, done: phases.append((text, done)),
        )
        assert len(plane.client.list("Node")) == 10
        assert plane.client.list("Pod") == []
        assert plane.client.list("v1/Event") == []
        assert len({binding.pod for binding in bindings(plane.audit_log)}) == 60
        assert len(bindings(plane.audit_log)) == 120
    assert [(race.scheduler, race.events) for race in found.rounds] == [("kube_scheduler", 60), ("podium", 60)]
    for figures in (found.kube_scheduler, found.podium):
        assert figures.pods_per_s > 1
        assert figures.peak_mb > 10
    assert found.ratio == round(found.podium.pods_per_s / found.kube_scheduler.pods_per_s, 3)
    assert [done for _, done in phases].count(True) == 2


def test_pods_that_stay_unbound_are_an_error(
    empty_control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.bench.e2e.PATIENCE", 0.5)
    starts = {"kube_scheduler": lambda: empty_control_plane.start_scheduler({"profiles": [{"schedulerName": "other"}]})}
    with pytest.raises(RaceError, match=r"kube_scheduler bound 0 of 3 pods and then none"):
        compare(empty_control_plane, starts, 1, 3, 1, lambda _text, _done: None)

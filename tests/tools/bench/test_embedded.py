"""The benchmark of the embedded API, in small."""

from tools.bench.embedded import run_embedded
from tools.bench.report import embedded_json, embedded_table


def test_everything_is_measured_and_told() -> None:
    phases: list[str] = []
    found = run_embedded(3, 40, lambda text, done: phases.append(text))
    assert (found.nodes, found.pods, found.watchers) == (3, 40, 10)
    assert min(found.creates_per_second, found.binds_per_second, found.watch_events_per_second) > 0
    assert found.resident_bytes > 10_000_000
    assert found.list_bytes > 40 * 500
    assert phases[-1] == "done"
    assert embedded_table(found).row_count == 9
    assert '"creates_per_second"' in embedded_json(found)

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import counts
from podium.cluster.columns import ColumnSet
from podium.cluster.counts import RowCount
from podium.cluster.labels import NodeLabels

ROWS = 5
ZONES = ("a", "b", "c", None)

steps = st.one_of(
    st.tuples(st.just("add"), st.integers(0, ROWS - 1), st.integers(-2, 3)),
    st.tuples(st.just("label"), st.integers(0, ROWS - 1), st.sampled_from(ZONES)),
    st.tuples(st.just("clear"), st.integers(0, ROWS - 1), st.none()),
)


def labelled(zone: str | None) -> dict[str, str]:
    return {} if zone is None else {"zone": zone}


@pytest.mark.parametrize("few", [256, 1], ids=["kept", "taken when asked for"])
@settings(deadline=None)
@given(st.lists(steps, max_size=12))
def test_sums_follow_counts_and_labels(few: int, story: list[tuple[str, int, int | str | None]]) -> None:
    columns = ColumnSet()
    for _ in range(ROWS):
        columns.append_row()
    labels, tally = NodeLabels(columns), RowCount(columns.new(np.int64), count(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "FEW_VALUES", few)
        for what, row, value in story:
            if what == "add":
                assert isinstance(value, int)
                tally.add(row, value)
            elif what == "label":
                labels.set_row(row, labelled(None if value is None else str(value)))
            else:
                labels.clear_row(row)
            sums = tally.sums(labels, "zone")
            assert sums.tolist() == labels.column("zone").sums(tally.per_row).tolist()
            sums += 1  # theirs to change


def test_a_count_may_move_on_a_node_whose_label_changed_since() -> None:
    columns = ColumnSet()
    columns.append_row()
    labels, tally = NodeLabels(columns), RowCount(columns.new(np.int64), count(1))
    labels.set_row(0, {"zone": "a"})
    assert tally.sums(labels, "zone").tolist() == [0, 0]
    labels.set_row(0, {"zone": "b"})
    tally.add(0, 1)
    assert tally.sums(labels, "zone").tolist() == [0, 0, 1]

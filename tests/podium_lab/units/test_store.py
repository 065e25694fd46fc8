"""A store gives back what was put into it, and nothing else: whatever was done to its files is found and named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium_lab.units.store import UnitPlan, encode_result, open_store, result_name, verified_payload
from podium_lab.units.unit import DamagedError, StoreError, Unit, code_version

ONE = Unit("simulate", "a", (1, 1), {"settings": "0" * 64}, code_version())
texts = st.text(max_size=8)
units = st.builds(
    Unit,
    texts,
    texts,
    st.tuples(st.integers(0, 9), st.integers(0, 9)),
    st.dictionaries(texts, texts, max_size=3),
    texts,
)


@given(units, units)
def test_units_have_one_name_exactly_when_they_are_equal(one: Unit, other: Unit) -> None:
    assert (one.key == other.key) == (one == other)
    again = Unit(one.what, one.profile, one.seeds, dict(reversed(one.inputs.items())), one.version)
    assert again.key == one.key, "the order of inputs is no part of it"


@given(units, st.binary(max_size=50), st.data())
def test_a_result_file_that_was_changed_anywhere_is_no_result(unit: Unit, payload: bytes, data: st.DataObject) -> None:
    written = encode_result(unit, payload)
    assert verified_payload(written, unit) == payload
    at = data.draw(st.integers(0, len(written) - 1))
    changed = written[:at] + bytes([written[at] ^ data.draw(st.integers(1, 255))]) + written[at + 1 :]
    with pytest.raises(DamagedError):
        verified_payload(changed, unit)
    with pytest.raises(DamagedError):
        verified_payload(written[:at], unit)


def test_results_of_other_units_and_other_code_are_named(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    other = Unit("simulate", "b", (7, 7), ONE.inputs, ONE.version)
    older = Unit("simulate", "a", (1, 1), ONE.inputs, "0.1.0+older")
    for wrong, expected in ((other, "is the result of another unit (simulate b, seed 7)"), (older, "0.1.0+older")):
        store.place.write(result_name(ONE.key), encode_result(wrong, b"x"))
        (sentence,) = store.standing([ONE]).damaged.values()
        assert expected in sentence
        assert "(simulate a, seed 1)" in sentence
    store.place.write(result_name(ONE.key), encode_result(ONE, b"x")[:-1])
    assert "is cut off" in "".join(store.standing([ONE]).damaged.values())
    store.put_result(ONE, b"x")
    assert store.standing([ONE]).done.keys() == {ONE.key}


def test_damaged_inputs_are_found_and_replaced(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    digest = store.put_input(b"pods")
    assert store.input(digest) == b"pods"
    (tmp_path / "inputs" / digest).write_bytes(b"pod")
    with pytest.raises(StoreError, match="does not match its name"):
        store.input(digest)
    store.put_input(b"pods")
    assert store.input(digest) == b"pods"
    with pytest.raises(StoreError, match="no such input"):
        store.input("0" * 64)


def test_what_killed_processes_left_is_removed_and_what_others_write_is_not(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.put_result(ONE, b"x")
    written = tmp_path / result_name(ONE.key)
    host = os.uname().nodename.replace(".", "-")
    dead = written.with_name(f"{written.name}.{host}.{2**22 + 1}.0.partial")
    alive = written.with_name(f"{written.name}.{host}.{os.getpid()}.0.partial")
    elsewhere = written.with_name(f"{written.name}.other-host.1.0.partial")
    for path in (dead, alive, elsewhere):
        path.write_bytes(b"half")
    assert store.present().keys() == {ONE.key}
    assert store.clean() == 1
    assert [path.exists() for path in (dead, alive, elsewhere)] == [False, True, True]
    os.utime(elsewhere, (0, 0))
    assert store.clean() == 1, "a day old"


def test_a_plan_that_was_changed_is_not_run(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    name = store.put_plan(UnitPlan("podium simulate x", (ONE,)))
    assert store.plan(name).units == (ONE,)
    path = tmp_path / "plans" / f"{name}.json"
    path.write_text(path.read_text().replace("simulate x", "simulate y"))
    with pytest.raises(StoreError, match="missing or damaged"):
        store.plan(name)


def test_a_store_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="give another --store"):
        open_store(str(tmp_path / "file")).put_input(b"x")

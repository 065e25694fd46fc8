"""Rows of a CSV are never left out: what cannot be read is told with file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium_lab.simulator.csv_rows import MOST_MISTAKES, read_rows
from podium_lab.simulator.scenario import BrokerPods, ScenarioError
from podium_lab.simulator.traces import azure, broker, openb
from podium_lab.simulator.workload import of_file

HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"


def mistakes_of(path: Path, text: str) -> list[str]:
    path.write_text(text)
    with pytest.raises(ScenarioError) as found:
        openb.read_list(path)
    return found.value.mistakes


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("a,lots,1,0,0", 'column 2 (cpu_milli): expected a whole number of 0 or more, got "lots"'),
        ("a,-1,1,0,0", 'column 2 (cpu_milli): expected a whole number of 0 or more, got "-1"'),
        ("a,1,1.5,0,0", 'column 3 (memory_mib): expected a whole number of 0 or more, got "1.5"'),
        ("a,1,1,1,2000", 'column 5 (gpu_milli): expected 0 to 1000, got "2000"'),
        ("a,1,1,2,500", 'column 5 (gpu_milli): expected 1000 for 2 GPUs, got "500"'),
        (",1,1,0,0", 'column 1 (name): expected a value, got ""'),
        ("a,1,1,0", "column 5: expected 5 fields in a row, got 4"),
        ("a,1,1,0,0,9", "column 6: expected 5 fields in a row, got 6"),
        ("x,1,1,0,0", 'column 1 (name): expected a name that no other row has, got "x"'),
    ],
)
def test_a_broken_row_is_told_with_its_line_and_column(row: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "pods.csv"
    assert mistakes_of(file, f"{HEAD}x,1,1,0,0\n{row}\n") == [f"{file}:3: {expected}"]


def test_many_broken_rows_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "pods.csv"
    found = mistakes_of(file, HEAD + "".join(f"p{i},x,1,0,0\n" for i in range(MOST_MISTAKES + 5)))
    assert len(found) == MOST_MISTAKES + 1
    assert found[-1] == f"{file}: 5 more rows cannot be read"


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    file = tmp_path / "pods.csv"
    assert mistakes_of(file, "name,cpu_milli\na,1\n") == [
        f"{file}:1: expected the columns memory_mib, num_gpu, gpu_milli too, got name, cpu_milli"
    ]


def test_text_that_is_no_csv_is_told(tmp_path: Path) -> None:
    file = tmp_path / "pods.csv"
    assert "expected a row of CSV" in mistakes_of(file, f'{HEAD}"a"b,1,1,0,0\n')[0]
    file.write_bytes(HEAD.encode() + b"\xff\xfe,1,1,0,0\n")
    openb.read_list.cache_clear()
    with pytest.raises(ScenarioError, match="expected UTF-8 text"):
        openb.read_list(file)


def test_rows_without_a_header_go_by_number(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("1,2\n3,4\n")
    assert read_rows(file, lambda row: row.whole("2"), widths=(2,)) == [2, 4]


def test_a_broken_broker_row_is_told(tmp_path: Path) -> None:
    file = tmp_path / "broker.csv"
    file.write_text("1,1,1,any,0,1,300,-1,0.85,0.85,gold,0.5\n")
    with pytest.raises(ScenarioError, match=r'broker\.csv:1: column 11: expected one of prod, .*, got "gold"'):
        broker.read_workload(file, BrokerPods(file="").priorities)


def test_a_broken_azure_row_is_told(tmp_path: Path) -> None:
    file = tmp_path / "vms.csv"
    file.write_text(",".join(azure.COLUMNS) + "\n0,0,1000,1792,600,300,0\n")
    with pytest.raises(ScenarioError, match=r"vms\.csv:2: column 6 \(max_life_s\): expected at least min_life_s, 600"):
        azure.read_csv(file)


def test_columns_tell_the_format(tmp_path: Path) -> None:
    file = tmp_path / "work.csv"
    for text, field in (
        (HEAD, "openb"),
        (",".join(azure.COLUMNS) + "\n", "azure"),
        ("1,1,1,any,0,1,300,-1,0.85,0.85,free,0.5\n", "broker"),
    ):
        file.write_text(text)
        assert getattr(of_file(file), field) is not None
    file.write_text("a,b\n")
    with pytest.raises(ScenarioError, match="expected the columns of a workload"):
        of_file(file)

"""The report is one file that needs nothing else, and shows what there is to show."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from podium_lab.simulator import SimulationResults, simulate
from podium_lab.simulator.figures import COLUMNS
from podium_lab.simulator.pod_classes import BINS
from podium_lab.simulator.reading import load_scenario
from podium_lab.simulator.report.page import _course, render
from podium_lab.simulator.run import RunResult
from tests.podium_lab.simulator.scenarios import COMPARED, SMALL, loaded

TEXT = (
    SMALL
    + """
name: "<b>names</b> are text"
usage: {}
seeds: 1-2
profiles:
- {name: a}
- {name: "<script>b"}
"""
)


def page(tmp_path: Path, text: str = TEXT) -> str:
    file = tmp_path / "scenario.yaml"
    file.write_text(text)
    return render(simulate(file))


def test_the_report_needs_no_script_and_no_network(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert "<script" not in text
    assert not re.search(r"https?://|url\(|@import|<link|<img|<iframe", text)
    HTMLParser().feed(text)


def test_names_are_text(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert "<h1>&lt;b&gt;names&lt;/b&gt; are text</h1>" in text
    assert "&lt;script&gt;b" in text


def test_every_plot_is_well_formed_and_stays_in_its_frame(tmp_path: Path) -> None:
    plots = re.findall(r"<svg.*?</svg>", page(tmp_path), re.DOTALL)
    assert len(plots) >= 8
    for plot in plots:
        root = ElementTree.fromstring(plot)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for line in root.iter("polyline"):
            for point in line.attrib["points"].split():
                x, y = map(float, point.split(","))
                assert -1 <= x <= width + 1
                assert -1 <= y <= height + 1


def test_it_has_courses_waits_and_reasons(tmp_path: Path) -> None:
    crowded = TEXT.replace("count: 4", "count: 1") + "duration: 15m\n"
    text = page(tmp_path, crowded)
    for title in (
        "CPU allocation",
        "CPU utilisation, mean over nodes",
        "Pods placed within",
        "by reason",
    ):
        assert title in text
    assert "Insufficient cpu" in text


def test_it_is_made_for_light_and_dark(tmp_path: Path) -> None:
    assert "prefers-color-scheme: dark" in page(tmp_path)


def test_an_interrupted_sweep_says_so(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(TEXT)

    def interrupt(_number: int, _run: object) -> None:
        raise KeyboardInterrupt

    assert "Interrupted: 1 of 4 runs are finished" in render(simulate(file, finished=interrupt))


def test_what_only_grows_in_each_run_only_grows_in_the_report() -> None:
    """A seed that ends early counts on with its last value."""

    def run(seed: int, *overloaded: float) -> RunResult:
        rows = np.full((len(overloaded), len(COLUMNS)), np.nan)
        rows[:, COLUMNS.index("time_s")] = [60 * i for i in range(len(overloaded) - 1)] + [60 * len(overloaded) - 61]
        rows[:, COLUMNS.index("overloaded_node_minutes")] = overloaded
        rows[:, COLUMNS.index("arrived") :] = np.nan_to_num(rows[:, COLUMNS.index("arrived") :])
        return RunResult("default", seed, rows, {}, np.zeros(BINS, dtype=np.int64))

    results = SimulationResults(loaded(SMALL).scenario, [run(1, 0, 100, 200, 240), run(2, 0, 1, 2, 3, 4, 5, 6)], 2)
    course = _course(results, "default", 0, "time_s", "overloaded_node_minutes", 60.0)
    assert list(course.xs) == [0, 1, 2, 3, 4, 5]
    assert list(course.ys) == sorted(course.ys)
    assert course.ys[-1] == (240 + 5) / 2
    assert (list(course.low), list(course.high)) == ([0, 1, 2, 3, 4, 5], [0, 100, 200, 240, 240, 240])


def test_it_says_what_makes_the_same_results_again(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(TEXT)
    results = simulate(file, sets=["generate.count=20"])
    text = render(results, "podium simulate scenario.yaml --set 'generate.count=20'")
    assert f"Podium {version('podium')}" in text
    assert f"{file}: 2 profiles, seeds 1, 2" in text
    assert "podium simulate scenario.yaml --set &#x27;generate.count=20&#x27;" in text
    written = unescape(text.partition("as it ran</summary><pre>")[2].partition("</pre>")[0])
    assert load_scenario(written, "again.yaml").scenario == results.scenario


def test_profiles_are_compared_and_classes_told_apart(tmp_path: Path) -> None:
    shown = page(tmp_path, COMPARED)
    assert "<h2>More than default</h2>" in shown
    assert re.search(r"<td class=\"text\">wait mean, s: shape batch</td><td>(\* )?[+-]\d", shown)
    assert "<h2>By shape</h2>" in shown
    assert shown.count('<td class="text">batch</td>') == 3


def test_texts_stay_in_the_frame_and_equal_lines_can_be_told_apart(tmp_path: Path) -> None:
    plots = re.findall(r"<svg.*?</svg>", page(tmp_path, TEXT.replace("count: 60", "count: 90")), re.DOTALL)
    for plot in plots:
        root = ElementTree.fromstring(plot)
        width = float(root.attrib["viewBox"].split()[2])
        for text in root.iter("text"):
            x, long = float(text.attrib["x"]), 7.0 * len(text.text or "")
            anchor = text.attrib.get("text-anchor", "start")
            right = x + {"start": long, "middle": long / 2, "end": 0}[anchor]
            assert right <= width, (text.text, right)
    lines = [line for plot in plots for line in ElementTree.fromstring(plot).iter("polyline")]
    assert {line.attrib.get("stroke-dasharray") for line in lines} == {None, "9 6"}


def test_notes_name_their_seeds(tmp_path: Path) -> None:
    text = page(tmp_path, SMALL + "seeds: 1-3\nfaults: [{kind: drain, at: 1m, lasts: 1m}]\n")
    assert "<li>default: faults of nodes: 1 (seeds 1, 2, 3)</li>" in text

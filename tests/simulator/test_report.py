"""The report is one file that needs nothing else, and shows what there is to show."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

from podium.simulator import simulate
from podium.simulator.report.page import render
from tests.simulator.scenarios import SMALL

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

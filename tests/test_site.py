"""The documentation site builds without a warning, needs nothing from outside, and finds what is searched for."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import podium
import podium.load
import podium.testing
from docs.tables import ASKED_FOR, TABLES
from docs.tables.metrics import SECTIONS, MetricEntry, metrics
from podium import packages
from podium.cli.catalog import GROUPS
from podium_lab.simulator.scenario import scenario_schema

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LOADED = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc="([^"]+)"|<link[^>]*\shref="([^"]+)"[^>]*>""")
FETCHED = re.compile(r"""(?:@import|url\()\s*["']?(https?:)?//""")
TWO_SCREENS = 100


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-d", str(folder / "state")]
    result = subprocess.run([*build, str(DOCS), str(folder / "html")], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return folder / "html"


def test_every_page_is_built(site: Path) -> None:
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert {page.relative_to(site) for page in site.rglob("*.html")} >= pages


def test_nothing_is_loaded_from_outside(site: Path) -> None:
    for page in site.rglob("*.html"):
        for found in LOADED.findall(page.read_text()):
            assert not re.match("(https?:)?//", "".join(found)), f"{page.name} loads {''.join(found)}"
    for sheet in (*site.rglob("*.css"), *site.rglob("*.svg")):
        assert FETCHED.search(sheet.read_text()) is None, sheet.name


@pytest.mark.parametrize("stem", ["elasticquota", "podium_load_age_second", "leasedur", "maxnetworkcost"])
def test_the_search_knows_what_the_code_says(site: Path, stem: str) -> None:
    assert stem in (site / "searchindex.js").read_text().lower()


@pytest.mark.parametrize(
    ("searched", "page"),
    [
        ("gymnasium", "how-to/gymnasium"),
        ("queueing hint", "reference/plugin-contract"),
        ("static pod", "reference/coming-from-kube-scheduler"),
        ("kube-safe-scheduler", "reference/coming-from-kube-safe-scheduler"),
        ("networktraffic tutorial", "reference/coming-from-network-traffic"),
    ],
)
def test_what_is_searched_for_stands_in_a_title(site: Path, searched: str, page: str) -> None:
    """The search lists pages first whose title, or that of a section, has the words."""
    index = json.loads((site / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")"))
    found = {
        index["docnames"][number]
        for title, places in index["alltitles"].items()
        if searched in title.lower()
        for number, _section in places
    }
    assert found == {page}


def test_every_table_is_on_a_page() -> None:
    wanted = [name for page in DOCS.rglob("*.md") for name in ASKED_FOR.findall(page.read_text())]
    assert sorted(wanted) == sorted(TABLES)


def test_the_tables_have_every_plugin_and_every_command() -> None:
    assert {entry.group for entry in packages.plugins().values()} == set(GROUPS)
    headings = re.findall(r"^### (\w+)$", TABLES["plugin-arguments"](), re.MULTILINE)
    assert sorted(headings) == sorted(packages.plugins())
    commands = TABLES["commands"]()
    for command in ("podium up", "podium annotate usage", "podium manifest extender"):
        assert f"\n## {command}\n" in commands


def test_the_plugin_api_has_every_public_name_with_what_it_means() -> None:
    page = TABLES["plugin-api"]()
    parts = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    in_load = {name: getattr(podium.load, name) for name in podium.load.__all__}
    of_load = {name for name, each in in_load.items() if inspect.isclass(each) or inspect.isfunction(each)}
    assert set(podium.__all__) | set(podium.testing.__all__) | of_load <= {*parts, "Resource", "Action"}
    for name, text in parts.items():
        lines = [line for line in text.splitlines() if line and not line.startswith(("`from ", "|"))]
        assert lines, f"{name} has neither docstring nor attributes"
    assert '| `Resource.CONFIG_MAP` | `"configmaps"` |' in page
    assert "| `Action.UPDATE_NODE_LABEL` | 8 |" in page
    assert "`filter_node(cycle, node)" not in parts["Plugin"]
    assert "filter_node(cycle, node)" in page
    assert "`allocatable(resource: str) -> int` | What the node offers: cpu in thousandths" in parts["NodeInfo"]


def test_the_fields_of_a_scenario_come_with_their_values_and_what_they_mean() -> None:
    page = TABLES["scenarios"]()
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| .*? \| (.*?) \|$", page, re.MULTILINE)
    assert [name for name, _type, meaning in rows if not meaning] == []
    types = {name: kind for name, kind, _meaning in rows}
    assert types["unschedulable"] == "`drop`, `wait`"
    assert types["evicted"] == "`lost`, `restart`, `resume`"
    assert types["nodeOrder"] == "`given`, `shuffled`"
    assert types["phases"] == "list of [object](#rewardsphases)"
    written = scenario_schema()["$defs"]
    assert {name for part in written if part != "Distribution" for name in written[part]["properties"]} == set(types)


@pytest.fixture(scope="module")
def every_metric() -> list[MetricEntry]:
    return list(metrics())


def test_a_metric_comes_with_its_type_labels_and_meaning(every_metric: list[MetricEntry]) -> None:
    found = {metric.name: metric for metric in every_metric}
    assert found["podium_load_samples"][1:4] == (
        "gauge",
        ("source", "query", "outcome"),
        "What became of the samples of the last answer.",
    )
    assert found["podium_qos_slo"].labels == ("controller",)
    assert found["scheduler_schedule_attempts_total"].kind == "counter"


def test_every_metric_is_in_one_section(every_metric: list[MetricEntry]) -> None:
    for metric in every_metric:
        assert sum(belongs(metric) for belongs in SECTIONS.values()) == 1, metric


def test_the_readme_is_two_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= TWO_SCREENS

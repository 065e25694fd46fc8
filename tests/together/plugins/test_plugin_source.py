"""Plugins from files and installed packages: what is one plugin, what is two, and loading them again."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.cli.configuration import read_config
from podium.plugins import PluginLoadError, load_registry
from podium.plugins.plugin_source import load_source
from podium_cluster.cli.up import _installed, _sources
from tests.podium.cli.command import podium

SOURCE = """
from podium import Plugin

class SeatsOf(Plugin):
    reason = "WHY"
    def filter_node(self, cycle, node):
        return False
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: SeatsOf}]}}
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a plugin that is installed as `pip install -e .` does it."""
    about = tmp_path / "seats_of-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: seats-of\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[podium.plugins]\nSeatsOf = seats_of:SeatsOf\n")
    file = tmp_path / "seats_of.py"
    file.write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield file
    sys.modules.pop("seats_of", None)


@pytest.mark.parametrize("option", ["seats_of.py", "./seats_of.py:SeatsOf", "seats_of:SeatsOf"])
def test_the_file_of_an_installed_plugin_is_that_plugin(installed: Path, option: str) -> None:
    ran = podium("plugins", "--plugin", option)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count("SeatsOf") == 1


def test_another_file_is_another_plugin_and_the_one_that_has_the_name_is_said(installed: Path) -> None:
    (installed.parent / "copy.py").write_text(SOURCE)
    ran = podium("plugins", "--plugin", "copy.py")
    assert ran.code == 2
    assert ran.err == (
        f'--plugin copy.py: a plugin named "SeatsOf" exists already; it is that of {installed}: '
        "set another name, or uninstall that one\n"
    )
    with pytest.raises(PluginLoadError, match=r'"NodeName" exists already; set another name$'):
        (installed.parent / "copy.py").write_text(SOURCE.replace("SeatsOf", "NodeName"))
        load_registry(["copy.py"])


def test_an_installed_plugin_that_a_profile_enables_is_loaded_again(installed: Path) -> None:
    config = installed.parent / "scheduler.yaml"
    config.write_text(CONFIG)
    settings, registry = read_config(str(config))
    sources = _sources(str(config), _installed(settings, registry), None, settings.rules)
    assert installed in sources.files
    for reason in ("first", "second"):
        installed.write_text(SOURCE.replace("WHY", reason))
        assert vars(sources.load()[1]["SeatsOf"])["reason"] == reason


def test_a_module_can_be_loaded_again_and_again(installed: Path) -> None:
    for reason in ("first", "second", "third"):
        installed.write_text(SOURCE.replace("WHY", reason))
        (found,) = load_source("seats_of:SeatsOf", again=True)
        assert vars(found)["reason"] == reason


def test_a_mistake_in_a_file_of_several_plugins_names_the_plugin(tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    scores = "    def score_node(self, cycle, node): return 1\n"
    file.write_text(
        f"from podium import Plugin\nclass One(Plugin):\n{scores}class Two(Plugin):\n{scores}    reson = 'x'\n"
    )
    with pytest.raises(PluginLoadError, match=r'two\.py: plugin "Two": "reson" is no attribute of a plugin'):
        load_registry([str(file)])

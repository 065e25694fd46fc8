import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.plugins import load_named
from tests.podium.cli.command import Ran, podium
from tests.podium.config.stand_ins import REGISTRY, config_text


@pytest.fixture(autouse=True)
def stand_in_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    def stand_in(extra: Sequence[str] | None) -> tuple[dict[str, Any], list[Any]]:
        registry: dict[str, Any] = dict(REGISTRY)
        return registry, load_named(registry, extra or ())

    monkeypatch.setattr("podium.cli.configuration.registry_and_named", stand_in)


def podium_check(*arguments: str, stdin: str | bytes = "") -> Ran:
    return podium("check", *arguments, stdin=stdin)


def write(folder: Path, body: str) -> str:
    file = folder / "scheduler.yaml"
    file.write_text(config_text(body))
    return str(file)


def test_each_mistake_is_a_line_with_file_line_field_and_message_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "podMaxBackoffSeconds: 0\nparallelism: 0\nnope: 1\n")
    result = podium_check(file)
    assert result.code == 2
    assert result.out.splitlines() == [
        f"{file}:3: podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to PodInitialBackoffSeconds",
        f"{file}:4: parallelism: Invalid value: 0: should be an integer value greater than zero",
        f'{file}:5: nope: strict decoding error: unknown field "nope"',
    ]


def test_a_good_file_shows_the_plugins_in_running_order(tmp_path: Path) -> None:
    file = write(tmp_path, "profiles:\n- plugins:\n    score: {enabled: [{name: ImageLocality, weight: 9}]}\n")
    result = podium_check(file)
    assert result.code == 0
    words = result.out.split()
    assert words[:2] == [f"{file}:", "fine"]
    assert words[words.index("score") :][1:3] == ["ImageLocality", "(9),"]
    assert "bind" in words


def test_warnings_are_printed_and_change_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, "profiles:\n- plugins: {score: {disabled: [{name: ImageLocalty}]}}\n")
    result = podium_check(file)
    assert result.code == 0
    assert result.err.splitlines() == [
        f'warning: {file}:4: profiles[0].plugins.score.disabled[0]: no plugin is called "ImageLocalty", '
        "so nothing is disabled (did you mean ImageLocality?)"
    ]


def test_yaml_is_the_effective_configuration(tmp_path: Path) -> None:
    result = podium_check(write(tmp_path, "parallelism: 3\n"), "-o", "yaml")
    assert result.code == 0
    written = yaml.safe_load(result.out)
    assert (written["parallelism"], written["podMaxBackoffSeconds"]) == (3, 10)


def test_with_yaml_mistakes_go_to_standard_error(tmp_path: Path) -> None:
    result = podium_check(write(tmp_path, "parallelism: 0\n"), "-o", "yaml")
    assert (result.code, result.out) == (2, "")
    assert "parallelism" in result.err


def test_json_has_problems_and_configuration_as_data(tmp_path: Path) -> None:
    good = json.loads(podium_check(write(tmp_path, "parallelism: 3\n"), "-o", "json").out)
    assert (good["valid"], good["problems"], good["config"]["parallelism"]) == (True, [], 3)
    file = write(tmp_path, "paralelism: 3\n")
    bad = podium_check(file, "-o", "json")
    assert bad.code == 2
    assert json.loads(bad.out)["problems"] == [
        {
            "file": file,
            "line": 3,
            "path": "paralelism",
            "message": 'strict decoding error: unknown field "paralelism"',
            "hint": "did you mean parallelism?",
            "column": 1,
        }
    ]


def test_plugins_of_ones_own_are_loaded_first(tmp_path: Path) -> None:
    file = write(tmp_path, "profiles:\n- plugins: {score: {enabled: [{name: Mine}]}}\n")
    assert podium_check(file).code == 2
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from podium import Plugin\nclass Mine(Plugin):\n    def score_node(self, cycle, node):\n        return 1\n"
    )
    assert podium_check(file, "--plugin", f"{mine}:Mine").code == 0


def test_a_dash_reads_standard_input() -> None:
    result = podium_check("-", stdin=config_text("parallelism: 0\n"))
    assert result.code == 2
    assert result.out.startswith("<stdin>:3: parallelism:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.yaml"], "missing.yaml: cannot be read: No such file or directory"),
        (["."], ".: cannot be read: Is a directory"),
        (["-", "--plugin", "nowhere:Nothing"], "--plugin nowhere:Nothing: cannot be loaded: No module named 'nowhere'"),
    ],
)
def test_input_that_cannot_be_had_is_one_sentence(arguments: list[str], message: str) -> None:
    result = podium_check(*arguments, stdin="")
    assert (result.code, result.out, result.err) == (2, "", f"{message}\n")


def test_a_file_that_is_not_text_is_one_sentence_with_the_line(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    result = podium_check(str(file))
    assert (result.code, result.err) == (2, f"{file}:2: not UTF-8 text; save the file as UTF-8\n")


def test_help_has_an_example() -> None:
    result = podium_check("--help")
    assert result.code == 0
    assert "podium check scheduler.yaml -o yaml" in " ".join(result.out.split())


def test_the_name_of_a_profile_is_on_one_line(tmp_path: Path) -> None:
    result = podium_check(write(tmp_path, 'profiles:\n- schedulerName: "x\\ny\\e[2J"\n'))
    assert (result.code, "Profile x\\ny\\x1b[2J" in result.out.splitlines()) == (0, True)


def test_a_lease_that_no_api_server_can_have_is_refused(tmp_path: Path) -> None:
    result = podium_check(write(tmp_path, 'leaderElection: {resourceNamespace: "../x", resourceName: "a: b"}\n'))
    assert result.code == 2
    assert 'leaderElection.resourceNamespace: Invalid value: "../x"' in result.out
    assert 'leaderElection.resourceName: Invalid value: "a: b"' in result.out


def test_what_cannot_be_meant_is_named(tmp_path: Path) -> None:
    ran = podium_check(write(tmp_path, "extenders: [{urlPrefix: nope}]\n"))
    assert 'extenders[0].urlPrefix: "nope" is no URL, so it cannot be asked (write http://HOST:PORT/PATH)' in ran.err
    ran = podium_check("-", stdin="apiVersion: v1\nprofiles:\n\t- schedulerName: a\n")
    assert (ran.code, (ran.out + ran.err).count("a tab is not allowed here: indent with spaces")) == (2, 1)

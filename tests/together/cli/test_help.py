import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer

from podium.cli import app
from podium.cli.commands import CommandGroup, Heading
from tests.podium.cli.command import podium

COMMANDS = [
    ["explain"],
    ["check"],
    ["help"],
    ["version"],
    ["examples"],
    ["examples", "show"],
    ["examples", "copy"],
    ["policy", "list"],
    ["plugins"],
    ["plugins", "new"],
    ["telemetry", "show"],
    ["annotate", "usage"],
    ["annotate", "allocation"],
    ["manifest", "annotate"],
    ["manifest", "extender"],
    ["controller"],
    ["manifest", "controller"],
    ["crds"],
    ["completion"],
    ["bench"],
    ["bench", "scheduler-perf"],
    ["bench", "growth"],
    ["bench", "e2e"],
    ["bench", "embedded"],
    ["chaos"],
]


@pytest.mark.parametrize("command", [[], *COMMANDS], ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_has_an_example(command: list[str], option: str) -> None:
    ran = podium(*command, option)
    assert (ran.code, ran.err) == (0, "")
    assert f"Example: podium {' '.join(command)}" in " ".join(ran.out.split())


def test_podium_alone_shows_the_commands() -> None:
    ran = podium()
    assert ran.code == 0
    assert ran.out == podium("--help").out
    assert all(f"  {command[0]} " in ran.out for command in COMMANDS)


@pytest.mark.parametrize("group", ["annotate", "policy", "shadow", "telemetry", "workload"])
def test_a_group_alone_shows_its_commands_line_by_line(group: str) -> None:
    ran = podium(group)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == podium(group, "--help").out


def test_version_is_that_of_the_package_with_commit_and_kube_scheduler() -> None:
    said = podium("--version").out
    assert podium("version").out == said
    assert f"podium {json.loads(podium('version', '-o', 'json').out)['version']}" in said
    assert re.fullmatch(
        rf"podium {re.escape(version('podium'))}( \([0-9a-f]{{12}}\))?, decides as kube-scheduler v1\.36\.\d+\n", said
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script_and_its_answers(shell: str) -> None:
    script = podium("completion", shell)
    assert (script.code, script.err) == (0, "")
    assert "_PODIUM_COMPLETE" in script.out
    assert shell in script.out
    asked = {"COMP_WORDS": "podium sim", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "podium sim"}
    asked |= {"_PODIUM_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    command = [sys.executable, "-m", "podium"]
    answer = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=False)
    assert "simulate" in answer.stdout
    assert "explain" not in answer.stdout


TYPED = {
    "bash": "source _podium; COMP_WORDS=(podium sim) COMP_CWORD=1; _podium_completion podium; echo $COMPREPLY",
    "fish": "source _podium; complete -C 'podium sim'",
    "zsh": "compdef() {}; _arguments() { echo $@ }; words=(podium sim) CURRENT=2 fpath=(.); autoload _podium; _podium",
}
"""What a first Tab runs in each shell; zsh loads the script from its fpath then."""


@pytest.mark.parametrize("shell", TYPED)
def test_the_script_completes_in_the_shell_itself(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "_podium").write_text(podium("completion", shell).out)
    variables = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    completed = subprocess.run(
        [shell, "-c", TYPED[shell]], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert "simulate" in completed.stdout, completed.stderr
    assert "explain" not in completed.stdout


def every_command() -> list[list[str]]:
    def below(names: list[str], command: Any, parent: Any) -> Iterator[list[str]]:
        yield names
        context = command.context_class(command, info_name=names[-1] if names else "podium", parent=parent)
        for name, child in command.all_commands(context).items() if isinstance(command, CommandGroup) else ():
            yield from below([*names, name], child, context)

    return list(below([], typer.main.get_command(app), None))


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_every_help_fits_a_narrow_terminal_and_is_in_words(command: list[str]) -> None:
    text = podium(*command, "--help", columns=80).out
    assert podium("help", *command, columns=80).out == text
    assert not re.search(r"<\w+( range)?>|<list|[{}]|\[\[\w*\]|<=|\w\.\.\.$", text, re.M), text
    assert not re.search(r"^  (-\w, )?--[a-z-]+ (str|int|float|path)\b", text, re.M), text
    assert max(map(len, text.splitlines())) <= 80


def test_commands_stand_in_groups() -> None:
    text = podium("--help").out
    headings = [line for line in text.splitlines() if re.fullmatch(r"\w.*:", line)]
    assert headings == ["Options:", *(f"{heading}:" for heading in list(Heading)[:-1])]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("nope",), "podium has no command nope: there are up, "),
        (("bench", "e2"), "podium bench has no command e2: did you mean e2e?"),
        (("check", "x"), "podium check has no command x: it has none"),
    ],
)
def test_help_for_what_is_no_command_is_one_sentence(command: tuple[str, ...], sentence: str) -> None:
    ran = podium("help", *command)
    assert ran.code == 2
    assert ran.err.startswith(sentence)


def test_a_shell_that_is_not_known_is_one_sentence() -> None:
    ran = podium("completion", "tcsh")
    assert ran.code == 2
    assert "bash" in ran.err
    assert "Traceback" not in ran.err


def test_help_loads_nothing_that_takes_long() -> None:
    program = "import sys, podium.cli; print([m for m in ('numpy', 'msgspec', 'yaml', 'rich') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_the_program_can_be_run_as_a_module() -> None:
    result = subprocess.run([sys.executable, "-m", "podium", "--version"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, podium("--version").out)


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_extra: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("podium.cli.configuration.registry_with", broken)
    with pytest.raises(KeyError, match="ours"):
        podium("plugins")


def usages(page: str) -> Iterator[tuple[str, str]]:
    """The line of usage of each command, the first that begins with it, with those it goes on in."""
    seen = set()
    for block in re.findall(r"(?:^    .*\n)+", page, re.MULTILINE):
        for part in re.split(r"^    (?=podium )", block, flags=re.MULTILINE):
            line = " ".join(part.split())
            words = re.match(r"podium((?: [a-z][a-z0-9-]*)*)(?=$| )", line)
            if words and line[-1] != "…" and words[1] not in seen:
                seen.add(words[1])
                yield words[1].strip(), line


def test_the_page_of_commands_has_every_option_and_no_other() -> None:
    """`--tls-…` stands for all that begin so; a line of usage that ends in "…" leaves out the rest."""
    page = (Path(__file__).parents[3] / "docs/reference/cli.md").read_text()
    seen = 0
    for name, line in usages(page):
        command: Any = typer.main.get_command(app)
        context = command.context_class(command, info_name="podium")
        for word in name.split():
            command = command.get_command(context, word)
            context = command.context_class(command, info_name=word, parent=context)
        shown = set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*…?", line))
        groups = tuple(each.removesuffix("…") for each in shown if each.endswith("…"))
        options = [
            {*each.opts, *each.secondary_opts}
            for each in command.params
            if each.param_type_name == "option" and not each.hidden
        ]
        assert {each for each in shown if not each.endswith("…")} <= set().union(*options), name
        for names in options:
            in_a_group = any(option.startswith(groups) for option in names) if groups else False
            assert names & shown or in_a_group or "--help" in names, (name, names)
        seen += 1
    assert seen > 30

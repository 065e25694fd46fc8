import subprocess
import sys
from importlib.metadata import version

import pytest

from tests.cli.command import podium

COMMANDS = [
    ["explain"],
    ["check"],
    ["plugins"],
    ["plugins", "new"],
    ["telemetry", "show"],
    ["annotate", "usage"],
    ["annotate", "allocation"],
    ["annotate", "manifest"],
    ["extender", "manifest"],
    ["controller"],
    ["controller", "manifest"],
    ["crds"],
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


def test_version_is_that_of_the_package() -> None:
    assert podium("--version").out == f"podium {version('podium')}\n"


def test_help_loads_nothing_that_takes_long() -> None:
    program = "import sys, podium.cli; print([m for m in ('numpy', 'msgspec', 'yaml', 'rich') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_the_program_can_be_run_as_a_module() -> None:
    result = subprocess.run([sys.executable, "-m", "podium", "--version"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, f"podium {version('podium')}\n")


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_extra: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("podium.cli.registry.registry_with", broken)
    with pytest.raises(KeyError, match="ours"):
        podium("plugins")

"""The build: once per pin and machine, never half, and honest about what it lacks. Tried on a module of one line."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.testbed.availability import TestbedUnavailable, skip_or_fail
from tools.testbed.build import MINOR, MODULES, Module, build_module, go_command

MAIN = 'package main\n\nvar version = "unset"\n\nfunc main() { print(version) }\n'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = tmp_path / "cache"
    if go := shutil.which("go"):  # its cache too follows XDG_CACHE_HOME, and the standard library is compiled there
        go_cache = subprocess.run([go, "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
        monkeypatch.setenv("GOCACHE", go_cache)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return cache / "podium" / "testbed"


@pytest.fixture
def module(tmp_path: Path) -> Module:
    try:
        go_command()
    except TestbedUnavailable as unavailable:
        skip_or_fail(unavailable)
    source = tmp_path / "tiny"
    source.mkdir()
    (source / "go.mod").write_text("module podium.test/tiny\n\ngo 1.24\n\ntool podium.test/tiny\n")
    (source / "go.sum").write_text("")
    (source / "main.go").write_text(MAIN)
    return Module(str(source), {"tiny": "small"}, ("-X=main.version=v7",), "a moment")


def printed(folder: Path) -> str:
    return subprocess.run([folder / "small"], capture_output=True, text=True, check=True).stderr


def test_a_module_is_built_into_the_cache_with_its_linker_flags(module: Module, own_cache: Path) -> None:
    folder = build_module(module)
    assert folder.parent == own_cache
    assert printed(folder) == "v7"


def test_a_second_call_reuses_the_programs(module: Module, capsys: pytest.CaptureFixture[str]) -> None:
    first = build_module(module)
    made = (first / "small").stat().st_mtime_ns
    assert "building small" in capsys.readouterr().err
    assert build_module(module) == first
    assert (first / "small").stat().st_mtime_ns == made
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("changed", ["go.mod", "go.sum", "flags"])
def test_a_changed_pin_is_built_anew(module: Module, changed: str) -> None:
    before = build_module(module)
    if changed == "flags":
        module = module._replace(linker_flags=("-X=main.version=v8",))
    else:
        with (Path(module.folder) / changed).open("a") as file:
            file.write("// changed\n" if changed == "go.mod" else "example.com v1.0.0 h1:" + "A" * 43 + "=\n")
    after = build_module(module)
    assert after != before
    assert printed(after) == ("v8" if changed == "flags" else "v7")


def test_two_processes_build_once(module: Module) -> None:
    script = f"from tools.testbed.build import *; print(build_module(Module(*{tuple(module)!r})))"
    both = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    results = [process.communicate() for process in both]
    assert len({folder for folder, _ in results}) == 1
    assert sum("building small" in said for _, said in results) == 1


def test_a_failed_build_leaves_nothing_and_is_no_reason_to_skip(module: Module, own_cache: Path) -> None:
    (Path(module.folder) / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")
    with pytest.raises(RuntimeError, match="undefined"):
        build_module(module)
    assert [path.name for path in own_cache.iterdir() if path.suffix != ".lock"] == []


def test_without_go_the_test_bed_is_unavailable(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(TestbedUnavailable, match="no `go` command is on the PATH"):
        build_module(module)


def test_without_a_network_the_test_bed_is_unavailable(
    module: Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "empty"))
    kubernetes = MODULES[f"kubernetes-{MINOR}"]
    with pytest.raises(TestbedUnavailable, match="could not be downloaded") as caught:
        build_module(kubernetes)
    assert "\n" not in str(caught.value)

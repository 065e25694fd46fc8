"""The documentation is true: its files are written, its commands are run, and what they print is compared.

In a page, a `console` block holds commands ("$ …") with what they print, where "…" stands for anything. A block after
`<!-- write: PATH -->` is a file, one after `<!-- run -->` is Python that must work. Commands run one after the other,
as a reader would type them, in a folder of their own in which `src` and `examples` are the project's.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
import yaml

from podium.cli import app
from tools.kit.forked import folder_with_podium

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md"))),
]
FIVE_MINUTES = "docs/start.md"
"""The page whose commands begin with the wheel; tests/packaging follows it."""
NEEDS = {
    "docs/tutorial/train-a-policy.md": "numba",
    "docs/how-to/gymnasium.md": "jax",
    "docs/tutorial/train-an-agent.md": "jax",
}
"""Pages whose commands need a package of an extra."""
LONG = {"docs/how-to/gymnasium.md", "docs/tutorial/train-an-agent.md"}
"""Pages whose commands take seconds of CPU; their subject has a test that is long, too."""
BLOCK = re.compile(r"(?:<!-- (?P<mark>run|write: (?P<path>\S+)) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```\n", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)[^)]*\)")


class Block(NamedTuple):
    kind: str
    mark: str
    path: str
    text: str


class Command(NamedTuple):
    line: str
    prints: str


def blocks(page: str) -> Iterator[Block]:
    for found in BLOCK.finditer((ROOT / page).read_text()):
        yield Block(found["kind"], found["mark"] or "", found["path"] or "", found["text"])


def commands(text: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, prints = part.partition("\n")
        yield Command(line, prints)


PROGRESS = re.compile(r'^\{"units":.*"secondsLeft":.*\}\n', re.MULTILINE)
"""What a command says of its progress every five seconds: no page has it, and a busy machine takes longer."""


class Reader:
    """A reader who follows a page in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.home = self.cwd = folder
        for part in ("src", "examples"):
            (folder / part).symlink_to(ROOT / part)
        self.site = folder / "site"
        self.environment = {
            **os.environ,
            "PATH": f"{folder_with_podium()}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.site),
            "COLUMNS": "100",
            "PYTEST_ADDOPTS": "",  # options of this run are none of the reader's
        }

    def write(self, path: str, text: str) -> None:
        (self.cwd / path).write_text(text)

    def type(self, line: str) -> str:
        """What the command prints, on either stream."""
        if line.startswith("cd "):
            self.cwd = self.cwd / shlex.split(line)[1]
            return ""
        if line == "pip install -e .":  # into a folder that goes away, and without a network
            pip = [
                "pip",
                "install",
                "--quiet",
                "--no-index",
                "--no-deps",
                "--no-build-isolation",
                "--target",
                str(self.site),
            ]
            subprocess.run([sys.executable, "-m", *pip, "."], cwd=self.cwd, env=self.environment, check=True)
            # What was installed is a copy; the reader's own changes must count, as they do with -e.
            self.environment["PYTHONPATH"] = f"{self.cwd / 'src'}:{self.site}"
            return ""
        result = subprocess.run(  # noqa: S602  lines of the documentation, as a reader types them
            line,
            shell=True,
            cwd=self.cwd,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return PROGRESS.sub("", result.stdout)


def matches(expected: str, printed: str) -> bool:
    pattern = re.escape(expected.strip()).replace("…", ".*")
    return (
        re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed.splitlines()).strip(), re.DOTALL) is not None
    )


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.long] if page in LONG else [])
        for page in PAGES
        if page != FIVE_MINUTES and any(block.kind == "console" for block in blocks(page))
    ],
)
def test_the_commands_of_a_page_print_what_it_says(page: str, tmp_path: Path) -> None:
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    reader = Reader(tmp_path)
    for block in blocks(page):
        if block.path:
            reader.write(block.path, block.text)
        if block.kind == "console":
            for command in commands(block.text):
                printed = reader.type(command.line)
                assert matches(command.prints, printed), f"{page}: $ {command.line}\nprints\n{printed}"


@pytest.mark.parametrize("page", [page for page in PAGES if any(block.mark == "run" for block in blocks(page))])
def test_the_examples_of_a_page_work(page: str) -> None:
    for block in blocks(page):
        if block.mark == "run":
            exec(compile(block.text, page, "exec"), {"__name__": "example"})  # noqa: S102  the example itself


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ("CONTRIBUTING.md", "docs/changes.md")])
def test_a_page_says_where_the_files_in_its_commands_come_from(page: str) -> None:
    text = (ROOT / page).read_text()
    typed = re.findall(r"^(?:\$ |    )(?:podium|kubectl|helm|make) .*", text, flags=re.MULTILINE)
    assert "podium examples" in text or not any(re.search(r"\bexamples/", line) for line in typed)
    assert "checkout" in text or not any(
        re.search(r"\bdeploy/[a-z]+/", line) or line.split()[0] == "make" for line in typed
    )
    assert not any("src/" in line for line in typed if line.startswith("$ podium explain"))


def test_the_static_pod_runs_podium_with_options_that_it_has_and_is_probed_where_it_serves() -> None:
    page = "docs/reference/coming-from-kube-scheduler.md"
    (text,) = (block.text for block in blocks(page) if block.path == "kube-scheduler.yaml")
    (container,) = yaml.safe_load(text)["spec"]["containers"]
    name, *arguments = container["args"]
    podium: Any = typer.main.get_command(app)
    command = podium.get_command(podium.context_class(podium, info_name="podium"), name)
    given = command.make_context(name, arguments).params
    assert given["config"] == next(each["mountPath"] for each in container["volumeMounts"] if each["name"] == "config")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        at = container[probe]["httpGet"]
        assert (at["host"], at["port"]) == (given["bind_address"], given["secure_port"])
        assert at["path"] in ("/livez", "/readyz")


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    dead = [link for link in LINK.findall(text) if not ((ROOT / page).parent / link).exists()]
    assert dead == []

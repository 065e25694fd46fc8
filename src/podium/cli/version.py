"""Says which Podium this is: its version, the commit it was made from, and whose decisions it makes."""

from pathlib import Path
from typing import Final

from podium.cli.console import echo, echo_data
from podium.cli.options import Output, OutputOption
from podium.packages import version

AGREES_WITH: Final = "kube-scheduler v1.36.4"
COMMIT_FILE: Final = "commit.txt"
"""What the build of a package writes beside the code; a checkout has its repository instead."""
_SHORT: Final = 12


def version_command(output: OutputOption = Output.TABLE) -> None:
    """Print the version, the commit it was made from, and whose decisions it makes.

    Example: podium version
    """
    if output is Output.TABLE:
        echo(version_text())
    else:
        echo_data({"version": version(), "commit": _commit(), "decidesAs": AGREES_WITH}, output)


def version_text() -> str:
    """One line, such as "podium X.Y.Z (0123456789ab), decides as kube-scheduler v1.36.4"."""
    commit = _commit()
    return f"podium {version()}{f' ({commit[:_SHORT]})' if commit else ''}, decides as {AGREES_WITH}"


def _commit() -> str:
    package = Path(__file__).parents[1]
    try:
        return (package / COMMIT_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        pass
    try:
        return _head(package.parents[1] / ".git")
    except (OSError, ValueError):
        return ""


def _head(repository: Path) -> str:
    """The commit that is checked out, read without git; the repository of a worktree is a file that names it."""
    if repository.is_file():
        repository = Path(repository.read_text(encoding="utf-8").removeprefix("gitdir:").strip())
    head = (repository / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref:"):
        return head
    reference = head.removeprefix("ref:").strip()
    common = repository / "commondir"
    if common.is_file():
        repository = (repository / common.read_text(encoding="utf-8").strip()).resolve()
    if (repository / reference).is_file():
        return (repository / reference).read_text(encoding="utf-8").strip()
    for line in (repository / "packed-refs").read_text(encoding="utf-8").splitlines():
        commit, _, name = line.partition(" ")
        if name == reference:
            return commit
    return ""

"""Writes `podium/index.py`: the records of our packages, with the summary of each command taken from its help.

python -m tools.index            # after a change of a package's record or of a command's help
python -m tools.index --check    # exit code 1 if it is not up to date
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Final

from podium.cli.commands import command_of, summary
from podium.packages import Package, load

ORDER: Final = ("podium_cluster", "podium", "podium_dashboard", "podium_plugins", "podium_lab")
"""In which commands of one heading are listed."""
INDEX: Final = Path(__file__).parents[1] / "src/podium/index.py"
ABOUT: Final = '"""Lists what our packages bring. Written by `python -m tools.index` from their records; not edited."""'
IMPORTS: Final = "from podium.packages import CommandEntry, ListedPlugin, Package"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    text = index()
    if parser.parse_args().check:
        if INDEX.read_text(encoding="utf-8") == text:
            return 0
        print("src/podium/index.py is not up to date: run python -m tools.index", file=sys.stderr)
        return 1
    INDEX.write_text(text, encoding="utf-8")
    return 0


def index() -> str:
    """The text of the module: a line for each entry, so that a change of one is a change of one line."""
    lines = [ABOUT, "# fmt: off", "", IMPORTS, "", "PACKAGES: tuple[Package, ...] = ("]
    for name in ORDER:
        lines.append("    Package(")
        for field, value in _with_summaries(load(f"{name}.package:PACKAGE"))._asdict().items():
            if isinstance(value, tuple) and value:
                lines += [f"        {field}=(", *(f"            {_written(each)}," for each in value), "        ),"]
            else:
                lines.append(f"        {field}={_written(value)},")
        lines.append("    ),")
    return "\n".join([*lines, ")", ""])


def _written(value: object) -> str:
    """As `repr`, with the quotes of our style; entries without the names of their fields."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{type(value).__name__}({', '.join(map(_written, value))})"
    return repr(value)


def _with_summaries(package: Package) -> Package:
    commands = (entry._replace(summary=summary(command_of(entry))) for entry in package.commands)
    return package._replace(commands=tuple(commands))


if __name__ == "__main__":
    sys.exit(main())

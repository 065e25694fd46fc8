"""Draws the packages and their folders, with the imports between packages, from the import graph.

    python -m docs.architecture        # writes docs/architecture.svg

A package stands above those that it imports. An arrow that others imply is left out.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).parents[1]
OUT: Final = ROOT / "docs/architecture.svg"
ABOUT: Final = {
    "podium_lab": "simulation, training, plugins that learn",
    "podium_cluster": "the embedded API and podium up",
    "podium_plugins": "families beyond kube-scheduler",
    "podium": "the scheduler and the command",
    "kubecel": "CEL, patterns, quantities",
}
ROWS: Final = (("podium_lab", "podium_cluster"), ("podium_plugins",), ("podium",), ("kubecel",))
WIDTH, LINE, HEAD, GAP, ACROSS = 900, 20, 54, 46, 5
"""Pixels: of the picture, of a line of folders, of a box's head, between rows; folders in a line."""
STYLE: Final = (
    "text{font:14px system-ui,sans-serif;fill:#1b1f24}.name{font-weight:600;font-size:16px}.small{font-size:12px;"
    "fill:#57606a}rect{fill:#f6f8fa;stroke:#8c959f;rx:8}path{stroke:#0969da;fill:none;stroke-width:1.5;"
    "marker-end:url(#tip)}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}"
    "rect{fill:#151b23;stroke:#656c76}path{stroke:#4493f8}}"
)


def main() -> int:
    text = picture()
    if sys.argv[1:] == ["--check"]:
        return 0 if OUT.read_text(encoding="utf-8") == text else 1
    OUT.write_text(text, encoding="utf-8")
    return 0


def folders_of(package: str) -> list[str]:
    """The folders of a package; of many families the first stand for all."""
    found = sorted(each.name for each in (ROOT / "src" / package).iterdir() if (each / "__init__.py").exists())
    return [each for each in found if each != "cli"] if package != "podium" else found


def imports() -> set[tuple[str, str]]:
    """Which package imports which, without what follows from the others."""
    graph = grimp.build_graph(*ABOUT, cache_dir=str(ROOT / ".import_linter_cache"))
    found = {
        (module.partition(".")[0], each.partition(".")[0])
        for module in graph.modules
        for each in graph.find_modules_directly_imported_by(module)
    }
    return {
        (one, other)
        for one, other in found
        if one != other
        and not any((one, via) in found and (via, other) in found for via in ABOUT if via not in (one, other))
    }


def picture() -> str:
    boxes, parts, top = {}, [], 16
    for row in ROWS:
        width = (WIDTH - 32 - 24 * (len(row) - 1)) // len(row)
        across = ACROSS if len(row) == 1 else ACROSS // 2
        lines = {package: _lines(folders_of(package), across) for package in row}
        height = HEAD + LINE * max(map(len, lines.values())) + 14
        for number, package in enumerate(row):
            left = 16 + number * (width + 24)
            boxes[package] = (left, top, width, height)
            parts.append(_box(package, lines[package], boxes[package]))
        top += height + GAP
    arrows = [_arrow(boxes[one], boxes[other]) for one, other in sorted(imports())]
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    tip += '<path d="M0 0L8 4L0 8" style="marker-end:none"/></marker>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top - GAP + 16}" role="img" '
        f'aria-label="Packages of Podium and the imports between them"><style>{STYLE}</style><defs>{tip}</defs>'
        f"{''.join(parts)}{''.join(arrows)}</svg>\n"
    )


def _lines(names: list[str], across: int) -> list[str]:
    return [" · ".join(names[at : at + across]) for at in range(0, len(names), across)]


def _box(package: str, lines: list[str], box: tuple[int, int, int, int]) -> str:
    left, top, width, height = box
    rows = "".join(
        f'<text class="small" x="{left + 14}" y="{top + HEAD + LINE * number + 14}">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}"/>'
        f'<text class="name" x="{left + 14}" y="{top + 26}">{package}</text>'
        f'<text x="{left + 14}" y="{top + 46}">{escape(ABOUT[package])}</text>{rows}'
    )


def _arrow(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> str:
    """From the foot of a box to the head of one below; on the right of those that lie between."""
    x, y, end = one[0] + one[2] * 3 // 4, one[1] + one[3], other[1]
    if end - y > GAP:
        return f'<path d="M{x} {y}V{y + 12}H{WIDTH - 6}V{end - 12}H{other[0] + other[2] - 20}V{end}"/>'
    return f'<path d="M{x} {y}V{end}"/>'


if __name__ == "__main__":
    sys.exit(main())

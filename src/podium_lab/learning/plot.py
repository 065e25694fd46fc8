"""Draws how far a policy is ahead of another, list by list, as an SVG picture that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from podium_lab.learning.judge import Comparison
from podium_lab.simulator.report.plots import WIDTH, Dot, dot_chart

STYLE = (
    "svg{--s0:#2a78d6;--s1:#d1662a;--s2:#2f9e6e;--s3:#9154c4}text{fill:#5c5b57;font:12px system-ui,sans-serif}"
    ".name{fill:#1a1a19}.grid{stroke:#dddcd8}"
)
HEAD = 24
COLOURS = 4


def differences_plot(compared: Sequence[Comparison], policy: str, unit: str) -> str:
    """A dot with its 95 % interval for each list and percent or load (`unit`), one block for each other policy."""
    parts, top = [], 0.0
    for other in dict.fromkeys(each.against for each in compared):
        cells = [each for each in compared if each.against == other]
        lists = list(dict.fromkeys(each.list for each in cells))
        ties = len({each.ties for each in cells}) > 1
        dots = [
            Dot(
                f"{each.list}, {unit} {each.at:g}" + (f", {each.ties}" if ties else ""),
                lists.index(each.list) % COLOURS,
                each.difference.mean,
                each.difference.margin,
            )
            for each in cells
        ]
        chart = dot_chart(dots, "")
        height = float(chart.partition(f'viewBox="0 0 {WIDTH} ')[2].partition('"')[0])
        title = f"{policy} − {other}: GPU allocation in points, mean and 95 % interval"
        parts.append(f'<text class="name" x="12" y="{top + 16:.0f}">{escape(title)}</text>')
        parts.append(
            chart.replace("<svg ", f'<svg x="0" y="{top + HEAD:.0f}" width="{WIDTH}" height="{height:.0f}" ', 1)
        )
        top += HEAD + height
    shape = f'viewBox="0 0 {WIDTH} {top:.0f}" role="img"'
    back = f'<rect width="{WIDTH}" height="{top:.0f}" fill="#fcfcfb"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {shape}><style>{STYLE}</style>{back}{"".join(parts)}</svg>\n'

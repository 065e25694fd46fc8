"""Draws docs/live-view.svg: the live view of `podium up` with its sample workload, once that is decided.

python -m docs.picture
"""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from podium.cli.serving_options import run_to_end
from podium.config import default_config
from podium.plugins import load_registry
from podium_cluster.up.cluster import UpOptions, up
from podium_cluster.up.live_view.browsing import Browsing
from podium_cluster.up.live_view.frame import Size, draw
from podium_cluster.up.live_view.live_screen import REDRAWN
from podium_cluster.up.live_view.rows import rows_of
from podium_cluster.up.manifests import SAMPLE, read_workload
from podium_cluster.up.picture import Picture
from podium_cluster.up.pod_tracker import PodDecision
from podium_cluster.up.screen import Camera

TARGET: Final = Path(__file__).parent / "live-view.svg"
WIDTH, HEIGHT = 108, 30
FONTS: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Rich names fonts on the web; the reader's own monospace font does."""
DARK: Final = TerminalTheme(
    (24, 26, 31),
    (220, 223, 228),
    [
        (24, 26, 31),
        (224, 108, 117),
        (152, 195, 121),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (220, 223, 228),
    ],
)


class PictureScreen:
    """A screen that keeps the newest picture."""

    def __init__(self) -> None:
        self.picture: Picture | None = None

    def say(self, text: str) -> None:
        """Nothing: only the picture counts."""

    def show_page(self, title: str, text: str) -> None:
        """Nothing, either."""

    def show_decision(self, decision: PodDecision) -> None:
        """Nothing: the picture has them."""

    async def run(self, camera: Camera) -> None:
        while True:
            self.picture = await camera.picture()
            await asyncio.sleep(REDRAWN)


def svg(picture: Picture) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False, markup=False, emoji=False)
    browsing = Browsing()
    for line in draw(picture, rows_of(picture, [], browsing.sort, browsing.needle), browsing, Size(WIDTH, HEIGHT)):
        line.end = "\n"
        console.print(line)
    return FONTS.sub("", console.export_svg(title="podium up", theme=DARK, unique_id="podium")).replace(
        "Fira Code, ", ""
    )


def main() -> None:
    registry, screen = load_registry(), PictureScreen()
    options = UpOptions(nodes=12, workload=read_workload(SAMPLE), demo=True, stays=False)
    run_to_end(up(default_config(registry), registry, options, screen))
    assert screen.picture is not None, "it ended before anything was drawn"
    TARGET.write_text(svg(screen.picture))


if __name__ == "__main__":
    main()

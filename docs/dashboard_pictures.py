"""Draws the dashboard's pictures for the README and the docs: docs/dashboard-*.png, of the cluster that comes along.

python -m docs.dashboard_pictures                    # needs Debian's package chromium
python -m docs.dashboard_pictures --all FOLDER       # every page of a dump and of a cluster that fills them, in both
                                                     # themes and three sizes, to look at
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from tests.together.dashboard.browser import FULL_CLUSTER, chromium, serving

TARGET: Final = Path(__file__).parent
SHOWN: Final = {"dashboard-overview": ("", "light"), "dashboard-pod": ("pods/shop/web-1", "dark")}
PAGES: Final = {
    "overview": "",
    "map": "map",
    "table": "map?as=table",
    "queue": "queue",
    "groups": "groups",
    "qos": "qos",
    "policies": "policy",
    "differences": "differences",
    "map-of-pod": "map?pod=shop/checkout",
    "whatif": "whatif?drain=worker-a1",
    "configuration": "configuration",
    "pending-pod": "pods/shop/checkout",
    "placed-pod": "pods/shop/web-1",
    "node": "nodes/worker-a1",
    "no-page": "no-such-page",
}
LIVE: Final = PAGES | {
    "measured": "map?bars=cpu,measured:CPU/Latest",
    "map-of-pod": "map?pod=ml/giant-0",
    "whatif": "whatif?drain=worker-1",
    "pending-pod": "pods/ml/giant-0",
    "placed-pod": "pods/ml/training-0",
    "node": "nodes/large-0",
}
SIZES: Final = ((1280, 800), (1920, 1080), (390, 844))
LONGEST: Final = 200
"""How often it is looked whether a page is there, every 50 ms."""


def draw(browser: Any, address: str, pages: dict[str, tuple[str, Path]], theme: str, size: tuple[int, int]) -> None:
    """Write a picture of each page: what to open, and the file."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)
    page = context.new_page()
    for path, file in pages.values():
        page.goto("about:blank")
        page.goto(f"{address}#/{path}")
        page.wait_for_selector("h1")
        for _ in range(LONGEST):
            if not page.evaluate("Boolean(document.querySelector('main .loading'))"):
                break
            page.wait_for_timeout(50)
        page.wait_for_timeout(300)
        page.screenshot(path=str(file))
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", metavar="FOLDER", type=Path, help="every page, to look at, instead of the docs' own")
    chosen = parser.parse_args().all
    dump = ("dashboard", "--from", "sample:cluster", "--port", "0")
    with chromium() as browser:
        if chosen is None:
            with serving(*dump) as (address, _process):
                for name, (path, theme) in SHOWN.items():
                    draw(browser, address, {name: (path, TARGET / f"{name}.png")}, theme, SIZES[0])
            return
        for folder, words, pages in (("dump", dump, PAGES), ("live", FULL_CLUSTER, LIVE)):
            (chosen / folder).mkdir(parents=True, exist_ok=True)
            with serving(*words) as (address, _process):
                for theme in ("light", "dark"):
                    for size in SIZES:
                        end = f"{theme}-{size[0]}.png"
                        files = {name: (path, chosen / folder / f"{name}-{end}") for name, path in pages.items()}
                        draw(browser, address, files, theme, size)


if __name__ == "__main__":
    main()

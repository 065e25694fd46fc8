"""Configures the documentation site; `make docs` builds it.

Every page is Markdown that also reads well where it lies. Nothing is fetched when the site is built or read, and search
works from the files alone. All warnings are errors: a dead link, a page that no menu leads to.
"""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

project = "Podium"
extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_static", "tables"]

myst_heading_anchors = 4

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "Podium"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False


def setup(app: Any) -> None:
    from docs.tables import with_tables

    def fill(_app: Any, _page: str, source: list[str]) -> None:
        source[0] = with_tables(source[0])

    app.connect("source-read", fill)

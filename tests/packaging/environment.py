"""Where the checkout is, and variables that do not lead to it."""

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def clean_environment() -> dict[str, str]:
    """The environment variables without those that lead to the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}

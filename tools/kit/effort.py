"""How much a property is tried: a sixth of its examples in `make test`, all of them in `make integration`.

Examples are drawn anew in every run, so that runs of `make test` see what one of them leaves out.
"""

import os
from typing import Final

ALL: Final = os.environ.get("PODIUM_EXAMPLES") == "all"


def examples(many: int) -> int:
    """How many of so many examples this run tries."""
    return many if ALL else -(-many // 6)


def seeds(many: int) -> range:
    """The seeds that this run tries of a test whose cost is the number of its seeds."""
    return range(examples(many))

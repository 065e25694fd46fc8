"""The first decision imports nothing: an import in the middle of it would hold up everything that the process does."""

import subprocess
import sys

SCRIPT = """
import sys
from tests.podium_lab.online.test_online_score import Bed
from tests.together.podium_plugins.test_network_traffic import scores
scores({}, ["a"])
bed = Bed()
before = set(sys.modules)
scores({"a": 0, "b": 50, "c": 100}, ["a", "b", "c", "new"])
bed.place()
print(*sorted(set(sys.modules) - before))
"""


def test_plugins_that_read_measured_load_have_imported_what_they_score_with() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []

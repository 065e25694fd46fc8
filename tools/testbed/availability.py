"""What a test does when a real component cannot be had: skip with the reason, or fail where it is required.

Developers without Go or a network still get a useful test run; continuous integration sets PODIUM_REQUIRE_TESTBED=1,
so that a missing component never looks like a passing test. The terminal summary gathers the skips
(see tests/conftest.py), which it knows by the prefix used here.
"""

import os
from typing import NoReturn

import pytest

SKIP_PREFIX = "test bed unavailable: "


class TestbedUnavailable(Exception):  # noqa: N818  (a state of the machine, not a mistake)
    """A part of the test bed cannot be had on this machine; the text is one sentence that says why."""

    __test__ = False  # the name starts with Test, which pytest would otherwise collect

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.part = part
        self.reason = reason


def required() -> bool:
    """Whether a missing part is a failure here."""
    return os.environ.get("PODIUM_REQUIRE_TESTBED") == "1"


def skip_or_fail(unavailable: TestbedUnavailable) -> NoReturn:
    """End the test that needed the part."""
    if required():
        pytest.fail(f"{SKIP_PREFIX}{unavailable} (PODIUM_REQUIRE_TESTBED=1 makes this a failure)", pytrace=False)
    pytest.skip(f"{SKIP_PREFIX}{unavailable}")

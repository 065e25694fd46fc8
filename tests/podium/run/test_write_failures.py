"""Failing writes in the log: the first of a kind at once, the others counted."""

import pytest

from podium.client import ApiError, ClientError, TimedOut
from podium.framework.clock import ManualClock
from podium.run.activity import REPEAT, WriteFailures

FORBIDDEN = ApiError(
    403, "Forbidden", 'pods "a" is forbidden: User "u" cannot create resource "pods/binding" in API group "" in x'
)
BROKEN = ApiError(500, "InternalError", "etcd is away")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def failures(clock: ManualClock, told: list[str]) -> WriteFailures:
    return WriteFailures(clock, told.append)


def test_a_missing_permission_is_told_with_the_rule(failures: WriteFailures, told: list[str]) -> None:
    failures.failed("binding", "x/a", FORBIDDEN)
    assert told == [
        f"binding pod x/a failed: {FORBIDDEN}; the role of this user needs the rule "
        'apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]'
    ]


def test_the_same_again_is_counted_and_told_a_minute_later(
    failures: WriteFailures, clock: ManualClock, told: list[str]
) -> None:
    for pod in ("a", "b", "c"):
        failures.failed("binding", f"x/{pod}", BROKEN)
    clock.advance(REPEAT)
    failures.failed("binding", "x/d", BROKEN)
    clock.advance(REPEAT)
    failures.failed("binding", "x/e", BROKEN)
    assert told == [
        f"binding pod x/a failed: {BROKEN}",
        f"binding pod x/d failed: {BROKEN} (and 2 more of this kind since the last line about it)",
        f"binding pod x/e failed: {BROKEN}",
    ]


@pytest.mark.parametrize(
    ("trying", "error"),
    [("binding", FORBIDDEN), ("binding", TimedOut("no answer", sent=True)), ("writing the status of", BROKEN)],
)
def test_another_kind_is_reported_at_once(
    failures: WriteFailures, told: list[str], trying: str, error: ClientError
) -> None:
    failures.failed("binding", "x/a", BROKEN)
    failures.failed(trying, "x/a", error)
    assert len(told) == 2

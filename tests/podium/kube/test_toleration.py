"""Which toleration covers which taint."""

import pytest

from podium.kube import Taint, Toleration
from podium.kube.toleration import PREFER_NO_SCHEDULE, tolerated, tolerates, untolerated

TAINT = Taint(key="dedicated", value="gpu", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration(key="dedicated", operator="Equal", value="gpu", effect="NoSchedule"), True),
        (Toleration(key="dedicated", value="gpu"), True),
        (Toleration(key="dedicated", value="cpu"), False),
        (Toleration(key="other", value="gpu"), False),
        (Toleration(key="dedicated", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(operator="Exists", value="ignored"), True),
        (Toleration(value="gpu"), True),
        (Toleration(key="dedicated", operator="In", value="gpu"), False),
    ],
)
def test_effect_key_and_operator_decide(toleration: Toleration, covers: bool) -> None:
    assert tolerates(toleration, TAINT) is covers


@pytest.mark.parametrize(
    ("operator", "toleration", "taint", "covers"),
    [
        ("Lt", "10", "5", True),
        ("Lt", "10", "10", False),
        ("Gt", "10", "11", True),
        ("Gt", "10", "10", False),
        ("Gt", "-10", "-5", True),
        ("Gt", "5", "010", False),
        ("Gt", "+5", "10", False),
        ("Lt", "x", "5", False),
        ("Lt", "5", "", False),
        ("Lt", "9223372036854775808", "5", False),
    ],
)
def test_lt_and_gt_compare_canonical_integers_where_switched_on(
    operator: str, toleration: str, taint: str, covers: bool
) -> None:
    asked = Toleration(key="n", operator=operator, value=toleration)
    given = Taint(key="n", value=taint, effect="NoSchedule")
    assert tolerates(asked, given, comparisons=True) is covers
    assert tolerates(asked, given) is False


def test_any_toleration_is_enough() -> None:
    assert tolerated(TAINT, [Toleration(key="x"), Toleration(operator="Exists")])
    assert not tolerated(TAINT, [])


def test_the_first_untolerated_taint_with_an_asked_for_effect_is_found() -> None:
    soft = Taint(key="soft", effect=PREFER_NO_SCHEDULE)
    hard = Taint(key="hard", effect="NoExecute")
    assert untolerated([soft, TAINT, hard], [Toleration(key="dedicated", operator="Exists")]) == hard
    assert untolerated([soft, TAINT], []) == TAINT
    assert untolerated([soft, TAINT], [], effects=(PREFER_NO_SCHEDULE,)) == soft
    assert untolerated([soft], []) is None

"""What the drawn QoS workloads show: promises that fit are kept better than by priority, and no worse for anyone's SLO.

The figures of forty draws a family are in `docs/explanation/promises-compared.md`.
"""

from __future__ import annotations

import pytest

from podium_plugins.qos.formulas import AGGREGATE, AVERAGE
from tests.podium_lab.simulator.qos_draws import (
    FAMILIES,
    HOUR,
    Draw,
    Drawn,
    draw,
    fits,
    judged,
    least_deficit,
    most_met,
)

SERVICE = Drawn(0, "batch", 0.9, 4, AVERAGE)


def check(family: str, seed: int) -> None:
    found = judged(family, seed)
    assert found.deficit_holds(), (found.above_least(found.default), found.above_least(found.promises))
    assert found.met_holds(), (found.default["slo_met"], found.promises["slo_met"])
    assert found.gini_holds(), (found.default["gini"], found.promises["gini"])


@pytest.mark.parametrize(("family", "seed"), [("exp3", 54), ("exp1-independent", 8), ("exp1-concurrent", 8)])
def test_promises_that_all_but_fill_the_cluster_are_kept(family: str, seed: int) -> None:
    assert not fits(draw(family, seed), share=0.98)
    check(family, seed)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_promises_that_fit_are_kept(family: str) -> None:
    seeds = [seed for seed in range(101, 120) if fits(draw(family, seed), share=0.99)]
    for seed in seeds[:5]:
        check(family, seed)


@pytest.mark.parametrize(
    ("case", "rows", "does"),
    [
        ("4.5 slots of 4", [SERVICE, SERVICE._replace(slo=0.225)], False),
        ("3.9 slots of 4", [SERVICE, SERVICE._replace(slo=0.075)], True),
        ("the same, and each pod starts", [SERVICE, SERVICE._replace(slo=0.0999)], False),
        (
            "as much as there is, late: the first could have run before",
            [SERVICE, SERVICE._replace(at=1800, slo=0.19)],
            True,
        ),
        ("more than there is, late", [SERVICE, SERVICE._replace(at=1800, slo=0.25)], False),
        ("a Job that must be done in 600 s", [SERVICE, Drawn(0, "free", 0.5, 4, AGGREGATE, 10, 120)], True),
        ("a Job of short tasks", [SERVICE, Drawn(0, "free", 0.5, 4, AGGREGATE, 10, 5)], True),
        ("two of them", [SERVICE, *[Drawn(2800, "free", 0.6, 4, AGGREGATE, 999, 100)] * 2], False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_fits(case: str, rows: list[Drawn], does: bool) -> None:
    assert fits(Draw(tuple(rows), 1, 0.85)) is does, case


def test_a_flow_takes_another_way_where_the_first_is_full() -> None:
    assert most_met([10, 10], [[10, 10], [10, 0]], [10, 5]) == 15
    assert most_met([10, 10], [[10, 0], [5, 4]], [12, 9]) == 16


def test_the_first_start_of_a_pod_that_shall_always_run_is_a_deficit() -> None:
    always = SERVICE._replace(slo=1.0)
    assert least_deficit(Draw((always, SERVICE), 1, 0.85)) == pytest.approx(2.33 / HOUR / 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_draws_contend_fit_and_are_the_same_for_a_seed(family: str) -> None:
    for seed in (1, 2):
        drawn = draw(family, seed)
        assert drawn.contends
        assert fits(drawn)
        assert drawn == draw(family, seed)

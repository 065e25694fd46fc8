import random
import statistics

import pytest

from podium_cluster.kubelets.declared import DrawError, amount, declared, duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30.0), ("1m30s", 90.0), ("0", 0.0), ("250ms", 0.25), (" 2h ", 7200.0)]
)
def test_a_duration_is_what_it_says(text: str, seconds: float) -> None:
    assert duration(text).draw(random.Random(1)) == seconds


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [
        ("exp(60s)", 60, 60),
        ("uniform(10s,2m)", 65, 110 / 12**0.5),
        ("normal(60s, 5s)", 60, 5),
        ("lognormal(45s,0.5)", 45 * 2.718281828**0.125, 27.15),
    ],
)
def test_a_distribution_has_the_mean_and_deviation_it_says(text: str, mean: float, deviation: float) -> None:
    rng = random.Random(7)
    values = [duration(text).draw(rng) for _ in range(20_000)]
    assert statistics.fmean(values) == pytest.approx(mean, rel=0.03)
    assert statistics.pstdev(values) == pytest.approx(deviation, rel=0.05)
    assert min(values) >= 0


@pytest.mark.parametrize(
    ("text", "value", "share"), [("250m", 0.25, False), ("2", 2.0, False), ("1Gi", 2.0**30, False), ("60%", 0.6, True)]
)
def test_an_amount_is_a_quantity_or_a_share_of_the_request(text: str, value: float, share: bool) -> None:
    found = amount(text)
    assert (found.draw(random.Random(1)), found.share) == (value, share)


@pytest.mark.parametrize(
    "text", ["30", "soon", "-5s", "exp()", "exp(1s,2s)", "uniform(1s)", "gamma(1s)", "uniform(1s,", "exp(60)", ""]
)
def test_what_cannot_be_read_is_refused_with_what_to_write_instead(text: str) -> None:
    with pytest.raises(DrawError, match=r'cannot be read; write a duration such as "30s"'):
        duration(text)


@pytest.mark.parametrize("text", ["uniform(20%,1)", "much", "60 %x", "-1"])
def test_an_amount_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(DrawError, match="write a quantity or a share"):
        amount(text)


def test_annotations_that_cannot_be_read_count_as_absent_and_are_told() -> None:
    found = declared({"podium.dev/startup": "soon", "podium.dev/exit-code": "many"}, of_job=False)
    assert found.startup == declared({}, of_job=False).startup
    assert found.exit_code == 0
    assert [each.split(":")[0] for each in found.complaints] == [
        "annotation podium.dev/exit-code",
        "annotation podium.dev/startup",
    ]


def test_only_jobs_end_by_themselves_unless_told() -> None:
    assert declared({}, of_job=False).duration is None
    assert declared({}, of_job=True).duration is not None
    assert declared({"podium.dev/duration": "5s"}, of_job=False).duration == duration("5s")


def test_an_exit_code_may_have_a_likelihood() -> None:
    rng = random.Random(3)
    found = declared({"podium.dev/exit-code": "3@0.25"}, of_job=True)
    codes = [found.draw_exit_code(rng) for _ in range(4000)]
    assert set(codes) == {0, 3}
    assert codes.count(3) == pytest.approx(1000, rel=0.1)

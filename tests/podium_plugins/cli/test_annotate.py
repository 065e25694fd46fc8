"""`podium annotate`: input that cannot be meant."""

import pytest

from podium_plugins.cli.annotate import _source
from tests.podium.cli.command import podium

PROMETHEUS = ("--prometheus", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("usage",), "--prometheus is missing: write where Prometheus is, such as http://prometheus:9090"),
        (("usage", "--prometheus", "prom:9090"), "--prometheus prom:9090: Invalid value"),
        (("usage", *PROMETHEUS, "--window", "day"), '--window "day": write a length of time, such as 90s or 5m'),
        (("usage", *PROMETHEUS, "--step", "0"), '--step "0": write a length of time, such as 90s or 5m'),
        (("usage", *PROMETHEUS, "--step", "5m", "--window", "1m"), "--step 5m is longer than --window 1m"),
        (("usage", *PROMETHEUS, "--tolerance", "-1"), "Invalid value for '--tolerance'"),
        (("allocation", "--interval", "-5s"), '--interval "-5s": write a length of time'),
        (("allocation", "--interval", "10m"), "--max-age 15m must be at least twice --interval 10m"),
        (("allocation", "--log-level", "loud"), '--log-level "loud": write one of trace, debug, info, warning, error'),
        (("allocation", "--kubeconfig", "/nowhere"), "/nowhere"),
    ],
)
def test_input_that_cannot_be_meant_is_told(
    arguments: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PROMETHEUS_ADDRESS", "PROM_IP", "ANNOTATE_FREQ"):
        monkeypatch.delenv(name, raising=False)
    ran = podium("annotate", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_variables_of_before_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROM_IP", "10.0.0.1")
    assert _source("", "", "").address == "http://10.0.0.1:9090"
    monkeypatch.setenv("PROM_PORT", "99")
    assert _source("", "", "").address == "http://10.0.0.1:99"
    assert _source("http://p", "", "").address == "http://p"

"""What could have been promised at most: the mean deficit that no scheduler can be below."""

from __future__ import annotations

import numpy as np
import pytest

from podium_lab.simulator.pods import PodTemplate, plain_spec
from podium_lab.simulator.qos_figures import QosFigures
from podium_lab.simulator.timeline import EPOCH

TIME = 1000.0


def figures(*controllers: tuple[str, str, str]) -> QosFigures:
    """Controllers by name, SLO and CPU; each has one pod, which waits from the start."""
    found = QosFigures()
    for name, slo, cpu in controllers:
        template = PodTemplate(plain_spec({"cpu": cpu, "memory": "1Gi"}), annotations={"controller": name, "slo": slo})
        found.arrived(template)
        found.observe(template.pod(name, EPOCH), EPOCH)
    return found


@pytest.mark.parametrize(
    ("case", "controllers", "least"),
    [
        ("all fits", [("a", "1", "1"), ("b", "0.5", "1")], 0.0),
        ("two slots for three", [("a", "1", "1"), ("b", "1", "1"), ("c", "0.5", "1")], 0.5 / 3),
        ("sizes differ: the largest gives most", [("a", "1", "1"), ("b", "1", "2")], 0.1 / 2),
        ("nothing is promised", [("a", "0", "9"), ("b", "0", "9")], 0.0),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_must_be_broken(case: str, controllers: list[tuple[str, str, str]], least: float) -> None:
    offered = np.array([[1400, 1400], [8 << 30, 8 << 30]], dtype=np.int64)
    assert figures(*controllers).least_deficit(EPOCH + TIME, offered) == pytest.approx(least), case


def test_slots_that_whole_controllers_cannot_fill_are_no_room() -> None:
    found = QosFigures()
    for name in ("a", "b"):
        annotations = {"controller": name, "slo": "0.75", "qosMeasuring": "concurrent"}
        template = PodTemplate(plain_spec({"cpu": "1", "memory": "1Gi"}), annotations=annotations)
        for number in range(2):
            found.arrived(template)
            found.observe(template.pod(f"{name}-{number}", EPOCH), EPOCH)
    offered = np.array([[1000, 1000, 1000], [8 << 30, 8 << 30, 8 << 30]], dtype=np.int64)
    assert found.least_deficit(EPOCH + TIME, offered) == pytest.approx((0.75 + 0.75 - 1) / 2), "one of them at a time"

"""A real MLServer serves an exported scorer: ModelScore decides as with the file itself, and survives its death."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from podium_lab.model_guard import PAUSE
from podium_lab.models.scorer_file import ScorerOrigin, onnx_of
from podium_lab.models.set_scorer import initial_weights
from tests.podium_lab.model_score.test_model_score import place, reasons, world
from tools.testbed.availability import TestbedUnavailable, skip_or_fail
from tools.testbed.model_server import MlServer

pytestmark = pytest.mark.testbed


@pytest.fixture(scope="module")
def scorer() -> bytes:
    weights = initial_weights(np.random.default_rng(7))
    weights["rho2_w"] = weights["rho2_w"] * 100
    return onnx_of(weights, ScorerOrigin("least-allocated", seed="7"))


@pytest.fixture(scope="module")
def mlserver(scorer: bytes) -> Iterator[MlServer]:
    server = MlServer(scorer)
    try:
        server.start()
    except TestbedUnavailable as unavailable:
        skip_or_fail(unavailable)
    yield server
    server.stop()


def test_mlserver_decides_as_the_file_does(mlserver: MlServer, scorer: bytes, tmp_path: Path) -> None:
    (tmp_path / "scorer.onnx").write_bytes(scorer)
    served = world(12, url=mlserver.url, model=MlServer.MODEL, deadline="30s")
    file = world(12, model=str(tmp_path / "scorer.onnx"), deadline="30s")
    assert place(served, 30) == place(file, 30)
    assert reasons(served) == {"": 30}
    assert served.reports == []


def test_no_pod_is_lost_while_mlserver_is_dead_and_it_decides_again_afterwards(mlserver: MlServer) -> None:
    found = world(6, url=mlserver.url, model=MlServer.MODEL, deadline="30s")
    place(found, 3)
    mlserver.kill()
    place(found, 8, start=3)
    assert len(found.bound) == 11
    counted = reasons(found)
    assert counted[""] == 3
    assert counted["breaker_open"] == 3
    mlserver.start()
    found.clock.advance(PAUSE + 1)
    place(found, 2, start=11)
    assert reasons(found)[""] == 5
    assert len(found.bound) == 13


def test_a_model_that_mlserver_does_not_have_is_a_fallback(mlserver: MlServer) -> None:
    found = world(3, url=mlserver.url, model="another", deadline="30s")
    place(found, 2)
    assert reasons(found) == {"no_model": 2}

"""A short run of the fuzzer: every reader and every endpoint survives what is thrown at it."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.fuzz.endpoints import ENDPOINTS, run_attack
from tools.fuzz.limits import cpu_limit
from tools.fuzz.mutation import mutated
from tools.fuzz.readers import READERS
from tools.kit.effort import examples

CHARACTERS = b" \t\n,.:(['\"\\=<@0a"
LONG, SHORT = 60_000, 200
"""Characters. A quadratic reader takes over 20 s for the longer run, an exponential one never ends with the shorter."""
FEW = settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))


SLOW = ("packed answers of the API", "answers on the wire")
"""Each input is an answer of a server, byte by byte or packed in three ways: `make integration` has the time."""
SOME = [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in READERS]


@pytest.mark.parametrize("name", SOME)
@FEW
@given(data=st.data())
def test_a_reader_refuses_in_its_own_words(name: str, data: st.DataObject) -> None:
    reader = READERS[name]
    rng = data.draw(st.randoms(use_true_random=False))
    text = data.draw(st.binary(max_size=60)) if rng.random() < 0.2 else mutated(rng, reader.seeds)
    try:
        reader.read(text)
    except reader.errors as error:
        assert str(error)


@pytest.mark.parametrize("name", SOME)
def test_a_reader_reads_the_examples(name: str) -> None:
    reader = READERS[name]
    for seed in reader.seeds:
        try:
            reader.read(seed)
        except reader.errors:
            assert name in ("kubeconfigs", "bench reports", "JSON patches", "selectors in queries", "protobuf")


@pytest.mark.parametrize("parts", [2, pytest.param(30, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", [name for name in READERS if name not in SLOW])
def test_a_reader_takes_time_in_proportion(name: str, parts: int) -> None:
    """A run of one character, after any part of an example: what backtracks never ends with some of these."""
    reader = READERS[name]
    characters = CHARACTERS if parts > 2 else Random().sample(CHARACTERS, examples(len(CHARACTERS)))
    for seed in reader.seeds if parts > 2 else reader.seeds[:1]:
        for character in characters:
            for end in {*range(0, len(seed), max(1, len(seed) // parts)), len(seed)}:
                length = LONG if end in (0, len(seed) // 2, len(seed)) else SHORT
                with cpu_limit(), suppress(*reader.errors):
                    reader.read(seed[:end] + bytes([character]) * length)


@pytest.mark.parametrize("name", ENDPOINTS)
def test_an_endpoint_never_fails(name: str) -> None:
    assert run_attack(name, Random(1), until=lambda count: count >= 300) == 300

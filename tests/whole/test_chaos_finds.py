"""The simulation can catch: each mistake of `broken` is found within a few dozen seeds, and not without it."""

import pytest

from podium.plugins import load_registry
from podium.whole.simulation import simulate
from tests.whole.broken import VARIANTS, Variant

MOST = 30


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.mistake)
def test_a_mistake_is_found(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = load_registry()
    variant.make(monkeypatch)
    for seed in range(variant.from_seed, variant.from_seed + MOST):
        outcome = simulate(seed, None, registry)
        if outcome.violations:
            assert {each.invariant for each in outcome.violations} & set(variant.found_by), outcome.violations[:5]
            return
    pytest.fail(f"{MOST} seeds did not show that {variant.mistake}")

"""Scenarios can catch: each mistake of `broken` is found within a few dozen seeds, and not without it."""

import pytest

from podium.plugins import load_registry
from tests.tools.chaos.broken import VARIANTS, Variant
from tools.chaos.invariants import NOTHING_BREAKS
from tools.chaos.scenario import run_scenario
from tools.chaos.workloads import WORKLOADS

MOST = 30


@pytest.mark.long
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.mistake)
def test_a_mistake_is_found(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = load_registry()
    variant.make(monkeypatch)
    for seed in range(variant.from_seed, variant.from_seed + MOST):
        outcome = run_scenario(seed, WORKLOADS[variant.workload] if variant.workload else None, registry)
        found = {each.invariant for each in outcome.violations} - {NOTHING_BREAKS}
        if variant.invariant in found if variant.invariant else found:
            return
    pytest.fail(f"{MOST} seeds did not show that {variant.mistake}")

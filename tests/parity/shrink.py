"""Finds a smaller cluster on which a difference still shows, by leaving objects out and asking both sides again.

Halves of the objects are dropped first, then quarters and so on down to single ones. Every try costs a start of
kube-scheduler, so their number is bounded and the smallest cluster found so far is the result.
"""

from collections.abc import Callable
from dataclasses import replace

from tests.parity.case import Case
from tests.parity.dice import Obj
from tests.parity.real_side import Disturbed, RealSide
from tests.parity.replay import plan_of

Judge = Callable[[Case], list[str]]


def decide_again(real: RealSide, case: Case, objects: list[Obj]) -> Case | None:
    """The case on these objects only; None when kube-scheduler gave no usable answer."""
    refused = real.creator.refusals.total()
    for result in real.run(plan_of(case, objects)):
        if isinstance(result, Disturbed) or real.creator.refusals.total() != refused:
            return None
        return replace(result, name=case.name)
    return None


def shrink(real: RealSide, case: Case, judge: Judge, tries: int) -> Case | None:
    """The smallest differing case found within the tries; None if even the whole case does not differ again."""
    best = decide_again(real, case, case.objects)
    if best is None or not judge(best):
        return None
    chunk = max(1, len(best.objects) // 2)
    while tries > 0:
        smaller, tries = _pass(real, best, judge, chunk, tries)
        if smaller is None and chunk == 1:
            break
        best = smaller or best
        chunk = max(1, min(chunk // 2, len(best.objects) // 2)) if smaller is None else chunk
    return best


def _pass(real: RealSide, best: Case, judge: Judge, chunk: int, tries: int) -> tuple[Case | None, int]:
    """Try to leave out each run of `chunk` objects once; the smaller case if any run could go."""
    found = None
    start = 0
    while start < len(best.objects) and tries > 0:
        kept = [*best.objects[:start], *best.objects[start + chunk :]]
        if not any(each["kind"] == "Node" for each in kept):
            start += chunk
            continue
        tries -= 1
        candidate = decide_again(real, best, kept)
        if candidate is not None and judge(candidate):
            best = found = candidate
        else:
            start += chunk
    return found, tries

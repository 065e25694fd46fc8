"""Finds a smaller cluster on which a difference still shows, by leaving objects out and asking both sides again.

Halves of the objects are dropped first, then quarters and so on down to single ones. Every try costs a start of
kube-scheduler, so their number is bounded and the smallest cluster found so far is the result.
"""

from collections.abc import Callable
from dataclasses import replace

from tools.parity.case import Case
from tools.parity.dice import Obj
from tools.parity.real_side import Disturbed, RealSide
from tools.parity.replay import plan_of

Judge = Callable[[Case], list[str]]


def decide_again(real: RealSide, case: Case, objects: list[Obj]) -> Case | None:
    """The case on these objects only; None when kube-scheduler gave no usable answer."""
    for result in real.run(plan_of(case, objects)):
        return None if isinstance(result, Disturbed) else replace(result, name=case.name)
    return None


def shrink(real: RealSide, case: Case, judge: Judge, tries: int) -> Case | None:
    """The smallest differing case found within the tries; None if even the whole case does not differ again."""
    best = decide_again(real, case, case.objects)
    if best is None or not judge(best):
        return None
    chunk = len(_removable(best)) // 2
    while chunk > 0 and tries > 0:
        best, tries = _pass(real, best, judge, chunk, tries)
        chunk //= 2
    return best


def _pass(real: RealSide, best: Case, judge: Judge, chunk: int, tries: int) -> tuple[Case, int]:
    """Try to leave out each run of `chunk` objects once, and keep what could go left out."""
    start = 0
    while start < len(_removable(best)) and tries > 0:
        removable = _removable(best)
        kept = [*removable[:start], *removable[start + chunk :]]
        if not any(each["kind"] == "Node" for each in kept):
            start += chunk
            continue
        tries -= 1
        standing = [each for each in best.objects if _stands(each)]
        candidate = decide_again(real, best, [*kept, *standing])
        if candidate is not None and judge(candidate):
            best = candidate
        else:
            start += chunk
    return best, tries


def _removable(case: Case) -> list[Obj]:
    """What can be left out, nodes last: they are what pods and volumes refer to."""
    objects = [each for each in case.objects if not _stands(each)]
    return sorted(objects, key=lambda each: str(each["kind"]) == "Node")


def _stands(obj: Obj) -> bool:
    """Whether the object is there in every cluster."""
    return bool(obj["kind"] == "Namespace" or obj["metadata"]["name"] == "kubernetes")

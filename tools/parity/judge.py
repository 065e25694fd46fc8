"""Asks Podium about a case and says in what its decision differs from kube-scheduler's.

Before 1.36, kube-scheduler looks at the pools and slices of devices in the order of a Go map. A decision about a pod
with claims is then right if Podium makes it, all of it, with pools and slices in some order.
"""

from tools.parity.case import Case
from tools.parity.compare import differences
from tools.parity.podium_side import Answer, decide, decide_in_other_order, devices_by_chance

ORDERS = 100
"""How many orders are tried: a node sees one to three pools of at most a few slices."""


def judge(case: Case) -> tuple[Answer, list[str]]:
    """Podium's answer, and one line for each thing that differs."""
    answer = decide(case)
    lines = differences(case, answer)
    if lines and devices_by_chance(case):
        for number in range(ORDERS):
            other = decide_in_other_order(case, number)
            if not differences(case, other):
                return other, []
    return answer, lines

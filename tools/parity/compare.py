"""Says in what two decisions differ; an empty list means they are the same decision.

Compared are the feasible nodes, every plugin's weighted score and the total on each, the chosen node, the exact
failure text, and the node to be freed by preemption with its victims. Two choices of kube-scheduler are arbitrary and
only checked for membership: among equally good nodes for preemption, and among equal totals when the order of the
nodes cannot be known.

Before 1.36, kube-scheduler looks at the pools and slices of devices in the order of a Go map. A decision about a pod
with claims is then right if Podium makes it, all of it, with pools and slices in some order.
"""

import re
from collections.abc import Sequence

from tools.parity.case import Case, Decision
from tools.parity.podium_side import Answer, decide, decide_in_other_order, devices_by_chance

_FOUND = re.compile(r"found a potential placement for pod on node \S+, preempting \d+ victims")

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


def differences(case: Case, answer: Answer) -> list[str]:
    """One line for each thing that differs, kube-scheduler's side first."""
    real = case.decision
    if real.outcome == "gated":
        return [f"gated, but Podium selects {answer.node}"] if answer.node else []
    if real.outcome == "bound":
        answers = (_feasible(real, answer), _scores(real, answer), _selected(case, answer))
        return [line for lines in (*answers, _devices(real, answer), _allocations(real, answer)) for line in lines]
    return [*_failure(real, answer), *_preemption(real, answer)]


def first_of_heap(totals: Sequence[int]) -> int:
    """Which of the totals a binary max-heap gives first: the first maximum in a pre-order walk of its tree."""
    best = max(totals)
    stack = [0]
    while True:
        index = stack.pop()
        if totals[index] == best:
            return index
        stack += [child for child in (2 * index + 2, 2 * index + 1) if child < len(totals)]


def _feasible(real: Decision, answer: Answer) -> list[str]:
    if real.feasible is None:
        return []
    found = {name for name, node in answer.nodes.items() if node.feasible}
    lines = []
    for name in sorted(set(real.feasible) - found):
        node = answer.nodes.get(name)
        why = f"{node.plugin}: {', '.join(node.reasons)}" if node else "unknown to it"
        lines.append(f"{name}: feasible, but Podium rejects it ({why})")
    lines += [f"{name}: rejected, but Podium finds it feasible" for name in sorted(found - set(real.feasible))]
    return lines


def _scores(real: Decision, answer: Answer) -> list[str]:
    lines = []
    for name, total in real.totals.items():
        node = answer.nodes.get(name)
        if node is None or not node.feasible:
            continue
        scores = real.scores.get(name, {})
        lines += [
            f"{name}: {plugin} scores {scores.get(plugin)}, Podium {node.scores.get(plugin)}"
            for plugin in sorted({*scores, *node.scores})
            if scores.get(plugin) != node.scores.get(plugin)
        ]
        if node.total != total:
            lines.append(f"{name}: total {total}, Podium {node.total}")
    return lines


def _selected(case: Case, answer: Answer) -> list[str]:
    real = case.decision
    lines = []
    if real.totals:
        names = list(real.totals)
        expected = names[first_of_heap(list(real.totals.values()))]
        if expected != real.node:
            lines.append(f"selected {real.node}, but the heap over the totals in their order gives {expected}")
    if answer.node == real.node:
        return lines
    if case.start_index < 0 and answer.node and _as_good(real, answer.node):
        return lines
    return [*lines, f"selected {real.node}, Podium {answer.node or f'nothing: {answer.message}'}"]


def _devices(real: Decision, answer: Answer) -> list[str]:
    """What claims get, on the node that kube-scheduler chose."""
    if real.devices == answer.devices:
        return []
    return [f"devices on {real.node}: {real.devices}, Podium {answer.devices}"]


def _allocations(real: Decision, answer: Answer) -> list[str]:
    """All that was written to claims for a pod."""
    return [
        f"claim {key}: is given {real.allocations.get(key)}, Podium {given}"
        for key, given in answer.allocations.items()
        if given != real.allocations.get(key)
    ]


def _as_good(real: Decision, node: str) -> bool:
    """Whether another order of the nodes could have led to this node; where none were scored, any may be the first."""
    if not real.totals:
        return real.feasible is None or node in real.feasible
    return real.totals.get(node) == max(real.totals.values())


def _failure(real: Decision, answer: Answer) -> list[str]:
    lines = []
    if answer.node:
        lines.append(f"no node fits, but Podium selects {answer.node}")
    if _without_node(answer.message) != _without_node(real.message):
        lines += [
            "the failure text differs",
            f"  kube-scheduler: {real.message}",
            f"  Podium:         {answer.message}",
        ]
    return lines


def _without_node(message: str) -> str:
    """A failure text with no node and number of victims in it: of equally good ones any may be named, and
    `_preemption` compares them."""
    return _FOUND.sub("found a potential placement", message)


def _preemption(real: Decision, answer: Answer) -> list[str]:
    if not real.preemption_node:
        return [f"no preemption, but Podium would free one of {sorted(answer.preemption)}"] if answer.preemption else []
    if real.preemption_node not in answer.preemption:
        return [f"preemption frees {real.preemption_node}, Podium one of {sorted(answer.preemption) or 'no node'}"]
    victims = answer.preemption[real.preemption_node]
    if sorted(victims) != sorted(real.victims):
        return [f"victims on {real.preemption_node}: {sorted(real.victims)}, Podium {sorted(victims)}"]
    return []

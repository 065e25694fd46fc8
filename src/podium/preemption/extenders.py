"""Asks extenders about preemption: which of the candidates may be freed, and by evicting which pods.

Extenders that support preemption are asked one after the other, each about what the one before left. They name victims
by uid; a node or a pod that is not there, or a node without any victim, is a mistake of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.cluster import Cluster
from podium.framework.answers import describe
from podium.framework.extender import ChosenVictims, Extender, ExtenderError, Victims
from podium.framework.handle import Handle
from podium.framework.status import PluginError
from podium.kube import Pod
from podium.preemption.dry_runs import Candidate
from podium.preemption.search import harm_of


def preemption_extenders(handle: Handle, pod: Pod) -> list[Extender]:
    """The extenders to ask about what is evicted for the pod."""
    return [each for each in handle.extenders if each.supports_preemption and each.is_interested(pod)]


def left_by_extenders(
    handle: Handle, extenders: Iterable[Extender], pod: Pod, candidates: Sequence[Candidate]
) -> list[Candidate]:
    """The candidates extenders agree to, with their victims; raises PluginError when one fails that must not."""
    left = list(candidates)
    for extender in extenders:
        try:
            left = _chosen(handle.cluster, extender, pod, left)
        except ExtenderError as error:
            if not extender.ignorable:
                raise PluginError(str(error)) from error
            handle.report(f"preemption for pod {pod.key}: extender {extender.name} is skipped: {error}")
        if not left:
            break
    return left


def least_harmful(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that rank best; more than one when nothing tells them apart."""
    least = min((candidate.harm for candidate in candidates), default=None)
    return [candidate for candidate in candidates if candidate.harm == least]


def _chosen(cluster: Cluster, extender: Extender, pod: Pod, candidates: Sequence[Candidate]) -> list[Candidate]:
    """One extender's choice, in the order of the candidates it was given."""
    victims = {each.node_name: Victims(each.victims, each.harm.violations) for each in candidates}
    rank = {name: number for number, name in enumerate(victims)}
    try:
        answer = extender.process_preemption(pod, victims)
        names = sorted(answer, key=lambda name: rank.get(name, len(rank)))
        chosen = [_candidate(cluster, extender, name, answer[name]) for name in names]
    except ExtenderError:
        raise
    except Exception as error:  # an extender that is handed in may raise anything
        raise ExtenderError(f'extender "{extender.name}": {describe(error)}') from error
    return [candidate for candidate in chosen if candidate is not None]


def _candidate(cluster: Cluster, extender: Extender, node_name: str, chosen: ChosenVictims) -> Candidate | None:
    row = cluster.row_of.get(node_name)
    if row is None or cluster.nodes[row] is None:
        raise ExtenderError(f'nodeinfo not found for node name "{node_name}"')
    pods: list[Pod] = []
    for uid in chosen.uids:
        placed = cluster.pods_on[row].get(uid)
        if placed is None:
            raise ExtenderError(
                f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) on node: {node_name}, "
                "but the pod is not found on that node"
            )
        pods.append(placed.pod)
    if pods:
        return Candidate(row, node_name, tuple(pods), harm_of(pods, chosen.violations))
    if extender.ignorable:
        return None
    raise ExtenderError(f'expected at least one victim pod on node "{node_name}"')

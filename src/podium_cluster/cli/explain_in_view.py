"""Explains pods in the process of `podium up`, for its live view and for `podium explain`, which lacks its plugins."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from podium.cli.errors import sentence_for
from podium.cli.live_cluster import ask_cluster, cluster_access
from podium.cli.show import text_of
from podium.cli.target import find_pod, target_of
from podium.engine.explain import Explanation, Outcome, explain, explain_waiting
from podium.kube import Pod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.config import Registry, SchedulerConfig
    from podium.kube import KubeObject


def explain_for_view(
    pod: str, kubeconfig: str, config: "SchedulerConfig", registry: "Registry"
) -> Callable[[int], str]:
    """To be called in a thread: it asks the API. What comes back makes the text for a width."""
    try:
        explanation = _explained(pod, kubeconfig, config, registry)[0]
    except Exception as error:  # whatever it is, it stands on the page instead of the explanation
        sentence = sentence_for(error) or f"{type(error).__name__}: {error}"
        return lambda _width: sentence
    return lambda width: text_of(explanation, width)


def explain_for_api(pod: str, kubeconfig: str, config: "SchedulerConfig", registry: "Registry") -> bytes:
    """To be called in a thread: the explanation of a pod, or those of all that wait, as they are decoded elsewhere.

    Raises ValueError with a sentence.
    """
    try:
        return msgspec.json.encode(_explained(pod, kubeconfig, config, registry))
    except Exception as error:  # what has no sentence is raised again
        sentence = sentence_for(error)
        if sentence is None:
            raise
        raise ValueError(sentence) from error


def _explained(pod: str, kubeconfig: str, config: "SchedulerConfig", registry: "Registry") -> list[Explanation]:
    def choose(objects: "Sequence[KubeObject]") -> Pod | None:
        return find_pod(target_of(pod, "default"), objects, (), "the cluster")[0] if pod else None

    withheld: list[str] = []
    objects, load, last = ask_cluster(cluster_access(kubeconfig, None), config, registry, choose, withheld.append)
    if not pod:
        return explain_waiting(objects, config, registry, load=load)
    chosen = choose(objects)
    assert chosen is not None
    explanation = explain(objects, chosen, config, registry, load=load)
    explanation.warnings += withheld
    if last is not None and last.held is not None:
        explanation.outcome, explanation.message = Outcome.WAITS, last.held
    return [explanation]

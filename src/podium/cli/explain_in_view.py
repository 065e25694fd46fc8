"""Explains a pod for the live view of `podium up`, with the code and in the words of `podium explain`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from podium.cli.errors import sentence_for
from podium.cli.live_cluster import ask_cluster, cluster_access
from podium.cli.show import text_of
from podium.cli.target import find_pod
from podium.engine.explain import Explanation, Outcome, explain

if TYPE_CHECKING:
    from podium.config import Registry, SchedulerConfig


def explain_for_view(
    pod: str, kubeconfig: str, config: "SchedulerConfig", registry: "Registry"
) -> Callable[[int], str]:
    """To be called in a thread: it asks the API. What comes back makes the text for a width."""
    try:
        explanation = _explained(pod, kubeconfig, config, registry)
    except Exception as error:  # whatever it is, it stands on the page instead of the explanation
        sentence = sentence_for(error) or f"{type(error).__name__}: {error}"
        return lambda _width: sentence
    return lambda width: text_of(explanation, width)


def _explained(pod: str, kubeconfig: str, config: "SchedulerConfig", registry: "Registry") -> Explanation:
    objects, load, held = ask_cluster(cluster_access(kubeconfig, None), config, registry, pod)
    explanation = explain(objects, find_pod(pod, objects, (), "the cluster"), config, registry, load=load)
    if held is not None:
        explanation.outcome, explanation.message = Outcome.WAITS, held
    return explanation

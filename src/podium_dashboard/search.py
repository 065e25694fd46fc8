"""Finds nodes and pods by a part of their name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from podium.run.dashboard import SchedulerView
from podium_dashboard.records import NameMatch, SearchAnswer
from podium_dashboard.viewer import Viewer

MOST: Final = 30
LONGEST: Final = 253


def search_answer(text: str, viewer: Viewer) -> Callable[[SchedulerView], SearchAnswer]:
    """Looks for a text in names; pods that wait come first."""
    wanted = text[:LONGEST].lower()

    def take(view: SchedulerView) -> SearchAnswer:
        return SearchAnswer(matches=list(islice(_matches(view, wanted, viewer), MOST)) if wanted else [])

    return take


def _matches(view: SchedulerView, wanted: str, viewer: Viewer) -> Iterator[NameMatch]:
    cluster = view.engine.cluster
    for pod in cluster.objects.pending_pods:
        if wanted in pod.key.lower() and viewer.sees(pod.namespace):
            yield NameMatch(kind="pod", name=pod.key, detail="waits")
    for name in sorted(cluster.row_of):
        if wanted in name.lower() and cluster.nodes[cluster.row_of[name]] is not None:
            yield NameMatch(kind="node", name=name, detail="")
    for placed in cluster.pods.values():
        if wanted in placed.pod.key.lower() and viewer.sees(placed.pod.namespace):
            yield NameMatch(kind="pod", name=placed.pod.key, detail=f"on {cluster.names[placed.row]}")

"""Names kube-scheduler's extension points, in its two spellings.

`Point` is spelt as the keys under `plugins:` in a configuration file (`preFilter`); `Point.label` is the spelling of
metrics, messages and Go interfaces (`PreFilter`). No other place in Podium spells them.
"""

from enum import StrEnum


class Point(StrEnum):
    """An extension point, in the order kube-scheduler builds them: of several mistakes it reports the first."""

    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    RESERVE = "reserve"
    PRE_SCORE = "preScore"
    SCORE = "score"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"
    PERMIT = "permit"
    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PLACEMENT_GENERATE = "placementGenerate"
    PLACEMENT_SCORE = "placementScore"
    POD_GROUP_POST_FILTER = "podGroupPostFilter"

    @property
    def label(self) -> str:
        """kube-scheduler's spelling outside of configuration files.

        >>> Point.PRE_FILTER.label
        'PreFilter'
        """
        return f"{self[0].upper()}{self[1:]}"

    @property
    def interface(self) -> str:
        """kube-scheduler's name for what a plugin must implement to run at the point: `ScorePlugin`."""
        return f"{self.label}Plugin"

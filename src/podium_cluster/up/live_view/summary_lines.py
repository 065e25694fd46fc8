"""Puts what the live view counts into one line each: time, waiting pods, gangs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from podium.framework.gang import GangCount
from podium.kube.printable import printable
from podium_cluster.up.live_view.messages import TROUBLE, ViewMessage
from podium_cluster.up.pod_tracker import PodVerdict
from podium_cluster.up.screen import counted

_STANDING: Final = {
    PodVerdict.FAILED: ("error", "errors"),
    PodVerdict.HELD: ("held at Permit", "held at Permit"),
    PodVerdict.REFUSED: ("fits nowhere", "fit nowhere"),
    PodVerdict.GATED: ("gated", "gated"),
    PodVerdict.UNTRIED: ("to be tried", "to be tried"),
}
"""For one pod, and for several."""


def clock(seconds: float) -> str:
    """
    >>> clock(75.4), clock(3675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def waiting_line(verdicts: Mapping[PodVerdict, int], backing_off: int = 0) -> str:
    """
    >>> waiting_line({PodVerdict.REFUSED: 1, PodVerdict.HELD: 2}), waiting_line({PodVerdict.REFUSED: 3}, 2)
    ('waiting: 2 held at Permit, 1 fits nowhere', 'waiting: 3 fit nowhere (2 backing off)')
    >>> waiting_line({})
    'waiting: no pods'
    """
    parts = [f"{number} {words[number > 1]}" for each, words in _STANDING.items() if (number := verdicts.get(each, 0))]
    retried = f" ({backing_off} backing off)" if parts and backing_off else ""
    return f"waiting: {', '.join(parts) or 'no pods'}{retried}"


def messages_line(messages: Iterable[ViewMessage]) -> str:
    """
    >>> messages_line([ViewMessage("error", "", ""), ViewMessage("warning", "", "", 3), ViewMessage("", "", "")])
    'messages: 1 error, 3 warnings'
    """
    levels: Counter[str] = Counter()
    for each in messages:
        levels[each.level] += each.times
    trouble = ", ".join(counted(levels[level], level) for level in TROUBLE if levels[level])
    return f"messages: {trouble}" if trouble else "messages"


def gang_line(gangs: Sequence[GangCount]) -> str:
    """How many groups have started, and how those that wait stand.

    >>> gang_line([GangCount("default/b", 5, 4, 0), GangCount("default/a", 3, 3, 3)])
    'gangs: 1 started, 1 waits: default/b (0 of 5 have a node, 4 are there)'
    """
    waiting = [gang for gang in gangs if gang.assigned < gang.minimum]
    standing = ", ".join(
        f"{printable(gang.key)} ({gang.assigned} of {gang.minimum} have a node, {gang.members} are there)"
        for gang in waiting
    )
    verb = "waits" if len(waiting) == 1 else "wait"
    return f"gangs: {len(gangs) - len(waiting)} started" + (f", {len(waiting)} {verb}: {standing}" if waiting else "")

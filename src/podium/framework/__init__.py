"""The plugin contract and the runtime that calls plugins."""

from podium.framework.clock import Clock, ManualClock, SystemClock
from podium.framework.cycle import Cycle
from podium.framework.depends_on import DependsOn, NodePart
from podium.framework.diagnosis import Diagnosis, NodeStatuses, Nomination, PostFilterResult, Verdict
from podium.framework.events import Action, Event, Interest, Resource
from podium.framework.handle import Handle, Writer
from podium.framework.normalize import MAX_SCORE, Normalizer, Scores, truncated_divide
from podium.framework.plugin import Plugin
from podium.framework.plugin_extras import Write
from podium.framework.queued import QueuedPod
from podium.framework.status import SKIP, Code, PluginError, Status, Wait

__all__ = [
    "MAX_SCORE",
    "SKIP",
    "Action",
    "Clock",
    "Code",
    "Cycle",
    "DependsOn",
    "Diagnosis",
    "Event",
    "Handle",
    "Interest",
    "ManualClock",
    "NodePart",
    "NodeStatuses",
    "Nomination",
    "Normalizer",
    "Plugin",
    "PluginError",
    "PostFilterResult",
    "QueuedPod",
    "Resource",
    "Scores",
    "Status",
    "SystemClock",
    "Verdict",
    "Wait",
    "Write",
    "Writer",
    "truncated_divide",
]

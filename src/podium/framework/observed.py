"""A profile whose extension points are timed.

It does what `ProfileRuntime` does and nothing else; it exists so that the other one stays free of stopwatches. An
extension point that raises took its time with an error.
"""

from __future__ import annotations

from podium.cluster import Nodes
from podium.config.registry import Registry
from podium.config.resolved import Profile
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, PostFilterResult
from podium.framework.handle import Handle
from podium.framework.observer import Observer, Stopwatch
from podium.framework.profile import PreFilterOutcome, ProfileRuntime, ScoreTable
from podium.framework.status import Code, PluginError, Status
from podium.kube import Pod


class ObservedRuntime(ProfileRuntime):
    watch: Stopwatch

    def __init__(self, profile: Profile, registry: Registry, handle: Handle, observer: Observer) -> None:
        super().__init__(profile, registry, handle)
        self.watch = observer.watch(self)

    def run_pre_enqueue(self, pod: Pod, first: str = "") -> Status | None:
        began = self.watch.now()
        status = super().run_pre_enqueue(pod, first)
        self.watch.took("PreEnqueue", code_of(status), began)
        return status

    def run_pre_filter(self, cycle: Cycle) -> PreFilterOutcome:
        watch = self.watch
        began = watch.now()
        try:
            outcome = super().run_pre_filter(cycle)
        except PluginError:
            watch.took("PreFilter", Code.ERROR, began)
            raise
        watch.took("PreFilter", code_of(outcome.status), began)
        watch.evaluated("PreFilter", cycle.skipped_filters)
        return outcome

    def run_post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        began = self.watch.now()
        try:
            result = super().run_post_filter(cycle, diagnosis)
        except PluginError:
            self.watch.took("PostFilter", Code.ERROR, began)
            raise
        self.watch.took("PostFilter", code_of(result.status), began)
        return result

    def run_pre_score(self, cycle: Cycle, nodes: Nodes) -> None:
        watch = self.watch
        began = watch.now()
        try:
            super().run_pre_score(cycle, nodes)
        except PluginError:
            watch.took("PreScore", Code.ERROR, began)
            raise
        watch.took("PreScore", Code.SUCCESS, began)
        watch.evaluated("PreScore", cycle.skipped_scores)

    def run_scores(self, cycle: Cycle, nodes: Nodes) -> ScoreTable:
        watch = self.watch
        began = watch.now()
        try:
            table = super().run_scores(cycle, nodes)
        except PluginError:
            watch.took("Score", Code.ERROR, began)
            raise
        watch.took("Score", Code.SUCCESS, began)
        watch.evaluated("Score", cycle.skipped_scores)
        return table

    def run_reserve(self, cycle: Cycle, node_name: str) -> Status | None:
        began = self.watch.now()
        try:
            status = super().run_reserve(cycle, node_name)
        except PluginError:
            self.watch.took("Reserve", Code.ERROR, began)
            raise
        self.watch.took("Reserve", code_of(status), began)
        return status

    def run_unreserve(self, cycle: Cycle, node_name: str) -> None:
        began = self.watch.now()
        super().run_unreserve(cycle, node_name)
        self.watch.took("Unreserve", Code.SUCCESS, began)

    def run_permit(self, cycle: Cycle, node_name: str) -> Status | dict[str, float]:
        began = self.watch.now()
        try:
            answer = super().run_permit(cycle, node_name)
        except PluginError:
            self.watch.took("Permit", Code.ERROR, began)
            raise
        code = answer.code if isinstance(answer, Status) else Code.WAIT if answer else Code.SUCCESS
        self.watch.took("Permit", code, began)
        return answer


def code_of(status: Status | None) -> Code:
    return Code.SUCCESS if status is None else status.code

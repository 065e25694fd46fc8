"""A profile whose extension points are timed.

It does what `ProfileRuntime` does and nothing else; it exists so that the other one stays free of stopwatches. An
extension point that raises took its time with an error. Superclass methods are called by name, which is quicker than
`super()`.
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
from podium.framework.status import ERROR, SUCCESS, Code, Status, code_of
from podium.kube import Pod


class ObservedRuntime(ProfileRuntime):
    watch: Stopwatch

    def __init__(self, profile: Profile, registry: Registry, handle: Handle, observer: Observer) -> None:
        super().__init__(profile, registry, handle)
        self.watch = observer.watch(self)
        self._now = self.watch.now
        self._took = self.watch.took
        self._reserve, self._permit = self._took["Reserve"], self._took["Permit"]

    def run_pre_enqueue(self, pod: Pod, first: str = "") -> Status | None:
        began = self._now()
        status = ProfileRuntime.run_pre_enqueue(self, pod, first)
        self._took["PreEnqueue"][code_of(status)](self._now() - began)
        return status

    def run_pre_filter(self, cycle: Cycle) -> PreFilterOutcome:
        began, code = self._now(), ERROR
        try:
            outcome = ProfileRuntime.run_pre_filter(self, cycle)
            code = code_of(outcome.status)
            return outcome
        finally:
            self._took["PreFilter"][code](self._now() - began)
            self.watch.evaluated("PreFilter", cycle.skipped_filters)

    def run_post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        began, code = self._now(), ERROR
        try:
            result = ProfileRuntime.run_post_filter(self, cycle, diagnosis)
            code = code_of(result.status)
            return result
        finally:
            self._took["PostFilter"][code](self._now() - began)

    def run_pre_score(self, cycle: Cycle, nodes: Nodes) -> None:
        began, code = self._now(), ERROR
        try:
            ProfileRuntime.run_pre_score(self, cycle, nodes)
            code = SUCCESS
        finally:
            self._took["PreScore"][code](self._now() - began)
            self.watch.evaluated("PreScore", cycle.skipped_scores)

    def run_scores(self, cycle: Cycle, nodes: Nodes) -> ScoreTable:
        began, code = self._now(), ERROR
        try:
            table = ProfileRuntime.run_scores(self, cycle, nodes)
            code = SUCCESS
            return table
        finally:
            self._took["Score"][code](self._now() - began)
            self.watch.evaluated("Score", cycle.skipped_scores)

    def run_reserve(self, cycle: Cycle, node_name: str) -> Status | None:
        began, code = self._now(), ERROR
        try:
            status = ProfileRuntime.run_reserve(self, cycle, node_name)
            code = SUCCESS if status is None else status.code
            return status
        finally:
            self._reserve[code](self._now() - began)

    def run_unreserve(self, cycle: Cycle, node_name: str) -> None:
        began = self._now()
        ProfileRuntime.run_unreserve(self, cycle, node_name)
        self._took["Unreserve"][SUCCESS](self._now() - began)

    def run_permit(self, cycle: Cycle, node_name: str) -> Status | dict[str, float]:
        began, code = self._now(), ERROR
        try:
            answer = ProfileRuntime.run_permit(self, cycle, node_name)
            code = answer.code if isinstance(answer, Status) else Code.WAIT if answer else SUCCESS
            return answer
        finally:
            self._permit[code](self._now() - began)

"""Declares the arguments of LearnedScore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from podium.config.durations import SECOND, Duration
from podium.config.field import FieldError, FieldPath
from podium_lab.learned.policy_file import SHIPPED
from podium_lab.model_decisions import ModelMode, mode_errors, share_errors
from podium_plugins.gpu.typical_pods import TypicalPod

COUNTED = "counted"


class LearnedScoreArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    policy: str = "fill"
    """A policy that ships (fill, general, churn, both, readable, network), or the path of a policy file."""
    mode: str = "active"
    """off, shadow (the fallback decides, the model's scores are recorded), canary:0.1 (a tenth of the pods), active."""
    deadline: Duration = Duration(5 * SECOND // 1000)
    """How long scoring all nodes may take."""
    knowledge: str | tuple[TypicalPod, ...] = COUNTED
    """What pods are to be expected: counted from the pods seen so far, or classes of pods, here or in a JSON file."""
    runtime: Literal["numpy", "onnx"] = "numpy"
    """What computes the network of a policy: NumPy, or onnxruntime with the .onnx file beside the policy."""
    log: str = ""
    """A file that gets one JSON line per decision; empty: none is written."""
    first_of_equals: bool = True
    """Whether ties go to the first node in the cluster's order; otherwise to the node kube-scheduler would take."""
    most_outside: float = 0.05
    """The share of terms outside the trained range from which the fallback decides."""
    most_drift: float = 0.5
    """The distance (0–1) between the sorts of pods seen and those of the training from which the fallback decides."""
    most_bad: float = 0.05
    """The share of bad answers, late or failed, among the last 1,000 beyond which the model no longer decides."""
    warn_drift: float = 0.3
    """The distance from which a warning is logged."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if not self.policy:
            yield FieldError.required(path.child("policy"), f"{', '.join(SHIPPED)}, or the path of a policy file")
        yield from mode_errors(self.mode, path)
        if self.deadline <= 0:
            yield FieldError.invalid(path.child("deadline"), str(self.deadline), "must be greater than zero")
        for name, value in (
            ("mostOutside", self.most_outside),
            ("mostBad", self.most_bad),
            ("mostDrift", self.most_drift),
            ("warnDrift", self.warn_drift),
        ):
            yield from share_errors(name, value, path)
        if not isinstance(self.knowledge, str):
            for i, each in enumerate(self.knowledge):
                yield from each.validate(path.child("knowledge").index(i))

    @property
    def on_trial(self) -> bool:
        """Whether the model is compared with the fallback at every decision."""
        return ModelMode(self.mode).on_trial

    @property
    def share(self) -> float:
        """The share of pods that the model decides."""
        return ModelMode(self.mode).share

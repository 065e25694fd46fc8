"""Types the arguments of RewardBias, and the environment variables that stand in for them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from podium.config.durations import SECOND, Duration
from podium.config.field import FieldError, FieldPath

NAMESPACE, CONFIG_MAP = "kube-system", "podium-rewards"
VARIABLES = {"namespace": "REWARD_NAMESPACE", "config_map": "REWARD_CONFIG_MAP"}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class RewardBiasArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    namespace: str | None = None
    config_map: str | None = None
    """The ConfigMap, and its namespace, in which rewards outlive the process."""
    learning_rate: float = 0.1
    """How much one lesson counts against all before it."""
    lasting_run: Duration = Duration(600 * SECOND)
    """A container that crashes again, but ran longer than this, is half as bad."""
    forget_after: Duration = Duration(30 * 86400 * SECOND)
    """Rewards of which nothing was heard for so long are dropped."""
    compat: bool = False
    """What is not known scores 0, and a node that joins late begins at 0, as in the original."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        for name, given in (("namespace", self.namespace), ("configMap", self.config_map)):
            if given is not None and not _NAME.fullmatch(given):
                yield FieldError.invalid(path.child(name), given, "must be a name as Kubernetes has them")
        if not 0 < self.learning_rate <= 1:
            at = path.child("learningRate")
            yield FieldError.invalid(at, self.learning_rate, "must be greater than 0 and at most 1")
        for name, length in (("lastingRun", self.lasting_run), ("forgetAfter", self.forget_after)):
            if length <= 0:
                yield FieldError.invalid(path.child(name), length, "must be greater than zero")

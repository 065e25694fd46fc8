"""Declares the arguments of ModelScore."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from podium.config.durations import SECOND, Duration
from podium.config.field import FieldError, FieldPath
from podium.load.settings import SourceSettings, Tls
from podium_lab.model_decisions import ModelTrialSettings, mode_errors, share_errors
from podium_lab.models.heuristics import OBJECTIVES, Objective
from podium_lab.models.node_arrays import METRIC_QUERIES

Protocol = Literal["open-inference", "podium", "suggestions"]
USUAL_DEADLINE: Final = Duration(50 * SECOND // 1000)
SUGGESTIONS_DEADLINE: Final = Duration(SECOND)
_SCHEMES: Final[Mapping[str, tuple[str, ...]]] = {
    "open-inference": ("http", "https"),
    "podium": ("http", "https"),
    "suggestions": ("tcp",),
}
_EXAMPLES: Final = {
    "open-inference": "http://models.ml:8080",
    "podium": "http://agent.ml:8080",
    "suggestions": "tcp://127.0.0.1:8765",
}


class ModelScoreArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    url: str = ""
    """Where the model is served: http:// or https://, tcp:// for suggestions; empty: `model` is a file."""
    protocol: Protocol = "open-inference"
    """How the server is asked: open-inference (KServe, Triton, MLServer, …), podium, or suggestions."""
    model: str = ""
    """The model's name on the server, for open-inference; without `url` the path of an .onnx file."""
    version: str = ""
    """The model's version on the server; empty: the server chooses."""
    deadline: Duration | None = None
    """How long a decision waits for the model: 50ms, for suggestions 1s."""
    mode: str = "active"
    """off, shadow (the heuristic decides, the model is recorded), canary:0.1 (a tenth of the pods), or active."""
    policy: Objective = "least-allocated"
    """The heuristic that stands in for the model."""
    source: SourceSettings = SourceSettings()
    """Prometheus, from which use, connections, traffic and latency of nodes come; without an address nothing does."""
    queries: dict[str, str] = {}
    """PromQL for metrics that are measured otherwise than usual; "" for one that isn't measured."""
    token_file: str = ""
    """A file with the bearer token that the server wants."""
    tls: Tls = Tls()
    """How the server's certificate is checked, and which one it is shown."""
    binary: bool | None = None
    """Whether tensors go as bytes, for open-inference; unset: where the server says it understands that."""
    log: str = ""
    """A file that gets one JSON line per decision; empty: none is written."""
    most_bad: float = 0.05
    """The share of bad answers, late or failed, among the last 1,000 beyond which the model no longer decides."""
    most_outside: float = 0.05
    """The share of features outside the trained range from which the heuristic decides, for files."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        yield from mode_errors(self.mode, path)
        yield from self._validate_url(path)
        if self.deadline is not None and self.deadline <= 0:
            yield FieldError.invalid(path.child("deadline"), str(self.deadline), "must be greater than zero")
        if self.policy not in OBJECTIVES:
            yield FieldError.not_supported(path.child("policy"), self.policy, OBJECTIVES)
        if self.source.address or self.source.kind != "prometheus":
            yield from self.source.validate(path.child("source"))
        for name in self.queries:
            if name not in METRIC_QUERIES:
                yield FieldError.not_supported(path.child("queries"), name, tuple(METRIC_QUERIES))
        if bool(self.tls.cert_file) != bool(self.tls.key_file):
            missing = "keyFile" if self.tls.cert_file else "certFile"
            yield FieldError.required(path.child("tls", missing), "certFile and keyFile go together")
        for name, value in (("mostBad", self.most_bad), ("mostOutside", self.most_outside)):
            yield from share_errors(name, value, path)

    def _validate_url(self, path: FieldPath) -> Iterator[FieldError]:
        if not self.url:
            if self.protocol != "open-inference":
                yield FieldError.required(path.child("url"), f"such as {_EXAMPLES[self.protocol]}")
            elif not self.model.endswith(".onnx") and self.mode != "off":
                detail = "a server's URL such as http://models.ml:8080, or the path of an .onnx file as model"
                yield FieldError.required(path.child("url"), detail)
            return
        schemes = _SCHEMES.get(self.protocol, ())
        try:
            url = urlsplit(self.url)
            fits = url.scheme in schemes and bool(url.hostname) and url.port != 0
        except ValueError:
            fits = False
        if not fits:
            wanted = " or ".join(f"{scheme}://" for scheme in schemes)
            yield FieldError.invalid(path.child("url"), self.url, f"must be a URL that starts with {wanted}")
        elif url.username is not None:
            yield FieldError.forbidden(path.child("url"), "a user name would be logged: use tokenFile")
        elif url.query or url.fragment:
            yield FieldError.invalid(path.child("url"), self.url, "must end with the path")
        if self.protocol == "open-inference" and not self.model:
            yield FieldError.required(path.child("model"), "the model's name on the server")

    @property
    def wait(self) -> float:
        """Seconds that a decision waits."""
        usual = SUGGESTIONS_DEADLINE if self.protocol == "suggestions" else USUAL_DEADLINE
        return (self.deadline or usual).seconds

    @property
    def trial(self) -> ModelTrialSettings:
        return ModelTrialSettings(self.mode, self.wait, self.most_bad, self.log)

"""Runs an ONNX file in this process, and takes a newer version of the file over when there is one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path

from podium_lab.model_score.question import ModelError, ModelNumbers, ModelQuestion, checked_numbers
from podium_lab.models.scorer_file import OnnxScorer, ScorerFileError


class FileModel:
    """A scorer file; `warn` is called where something about it couldn't be checked."""

    def __init__(self, path: str, most_outside: float, warn: Callable[[str], None]) -> None:
        self.name = path
        self._path = Path(path)
        self._most_outside = most_outside
        self._warn = warn
        self._stamp: Hashable = None
        self._scorer: OnnxScorer | None = None
        self._problem: ScorerFileError | None = None

    def prepare(self) -> None:
        """Read the file, if it's another one than before."""
        try:
            found = self._path.stat()
            stamp: Hashable = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            stamp = "missing"
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._scorer, self._problem = OnnxScorer(self._path), None
        except ScorerFileError as error:
            self._scorer, self._problem = None, error
            return
        if self._scorer.warning:
            self._warn(self._scorer.warning)

    def close(self) -> None:
        """Nothing is kept open."""

    def ask(self, question: ModelQuestion, _deadline: float) -> ModelNumbers:
        self.prepare()
        if self._scorer is None:
            assert self._problem is not None
            raise ModelError(self._problem.reason, str(self._problem))
        features = question.features()
        outside = self._scorer.share_outside(features)
        if outside > self._most_outside:
            raise ModelError("ood", f"{outside:.0%} of the features are far from those that {self.name} was trained on")
        return ModelNumbers(checked_numbers(self._scorer.scores(features), len(question.names), self.name))

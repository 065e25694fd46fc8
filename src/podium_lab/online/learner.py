"""Brings placements and rewards together, and learns from each pair once.

A placement is noted when a pod that was scored here is bound: the features of its node at that moment, under the uid of
the pod. The reward comes later, by the pod's own state. What cannot be learnt from is refused and counted:

    bad        no number from 0 to 1
    unknown    of a pod that was not scored here, or before the last start
    late       longer after the binding than allowed
    twice      the pod has had a reward, and another one

The same word of a pod again, as every change of it brings, is no second reward. Memory is bounded: the oldest
placements go first, and beyond a number of types pods share one model.

What was learnt is text with a checksum, kept in a file. What is read is used only if all of it is right: checksum,
features, sizes, finite numbers, and sums that examples can have. A file is written beside the old one and put in its
place at once, by a thread of its own: no decision waits for a disk. Of a machine that loses power in between, the old
text or a broken one may be left; the checksum tells.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from podium.framework.pod_outcomes import REWARD, PodOutcome
from podium.framework.row_numbers import read_decimal
from podium.kube.documents import FILE, DocumentError, read_json
from podium_lab.online.bandit import Floats, RidgeBandit

API_VERSION = "podium/online/v1"
LARGEST = 900_000
"""Characters: a ConfigMap ends at a MiB."""
MOST = 1e9
"""No sum over examples between 0 and 1, of which old ones are forgotten, is beyond this."""


class SavedModel(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The sums of one type of pods."""

    type: str
    rewards: int
    recent_error: float
    usual_error: float
    squared_error: float
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]


class SavedState(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """All that was learnt."""

    api_version: str = API_VERSION
    features: tuple[str, ...]
    classes: tuple[str, ...] = ()
    """The values of the nodes' label, in the order of their features."""
    models: tuple[SavedModel, ...] = ()
    sha256: str = ""


class StateError(Exception):
    """A text that is not what was learnt here: one sentence says why."""


def saved_model(kind: str, bandit: RidgeBandit) -> SavedModel:
    return SavedModel(
        type=kind,
        rewards=bandit.rewards,
        recent_error=bandit.recent_error,
        usual_error=bandit.usual_error,
        squared_error=bandit.squared_error,
        a=tuple(tuple(line) for line in bandit.a.tolist()),
        b=tuple(bandit.b.tolist()),
    )


def encode_state(state: SavedState) -> str:
    """The text of a state, with its checksum."""
    return msgspec.json.encode(msgspec.structs.replace(state, sha256=_checksum(state))).decode()


def decode_state(text: str | bytes, features: Sequence[str]) -> SavedState:
    """The state in a text, if these are its features; raises StateError."""
    raw = text.encode() if isinstance(text, str) else text
    if len(raw) > LARGEST:
        raise StateError(f"it is larger than {LARGEST:,} bytes")
    try:
        state = msgspec.convert(read_json(raw, bounds=FILE), SavedState)
    except (DocumentError, msgspec.ValidationError) as error:
        raise StateError(f"it is no such state: {error}") from None
    if state.api_version != API_VERSION:
        raise StateError(f'its apiVersion is "{state.api_version}"; this version reads {API_VERSION}')
    if state.sha256 != _checksum(state):
        raise StateError("its checksum is not that of its content")
    if state.features != tuple(features):
        raise StateError(f"it was learnt from other features ({', '.join(state.features)})")
    for model in state.models:
        _check(model, len(features))
    return state


def restore(bandit: RidgeBandit, model: SavedModel) -> None:
    """Have a learner go on from a model that was read."""
    errors = model.recent_error, model.usual_error, model.squared_error
    bandit.restore(np.array(model.a), np.array(model.b), model.rewards, errors)


def _check(model: SavedModel, size: int) -> None:
    errors = (model.recent_error, model.usual_error, model.squared_error)
    if len(model.b) != size or len(model.a) != size or any(len(line) != size for line in model.a):
        raise StateError(f'the model "{model.type}" has not the size of its features')
    if model.rewards < 0 or not all(0 <= each <= 1e6 for each in errors):
        raise StateError(f'the model "{model.type}" has impossible counts or errors')
    a = np.array(model.a)
    if not (np.isfinite(a).all() and np.abs(a).max() < MOST and np.abs(np.array(model.b)).max() < MOST):
        raise StateError(f'the model "{model.type}" has numbers that are not finite, or far too large')
    try:
        if not np.allclose(a, a.T):
            raise np.linalg.LinAlgError
        np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        raise StateError(f'the model "{model.type}" is not a sum over examples') from None


def _checksum(state: SavedState) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(state, sha256=""))).hexdigest()


class StateFile:
    """The file; what cannot be written is dropped until the next time."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="online-state")
        self._writing: Future[None] | None = None

    def read(self) -> bytes | None:
        """Its content, at most a little more than may be used; None where there is none."""
        with suppress(OSError), self._path.open("rb") as file:
            return file.read(LARGEST + 1)
        return None

    def write(self, text: str) -> bool:
        """Have the text written, unless the last one still is; whether it will be."""
        if self._writing is not None and not self._writing.done():
            return False
        self._writing = self._pool.submit(self._write, text.encode())
        return True

    def wait(self) -> None:
        """Until what was to be written is."""
        if self._writing is not None:
            self._writing.result()

    def _write(self, text: bytes) -> None:
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with suppress(OSError):
            beside.write_bytes(text)
            beside.replace(self._path)


# Learning

MOST_PLACEMENTS = 10_000
MOST_HEARD = 20_000
MOST_TYPES = 32
MOST_CLASSES = 8
OTHERS = "_others"
"""The model of all types beyond the most: no label has a value that begins so."""
KEY = "state"
"""Of the ConfigMap."""
WRITE_EVERY = 5.0
LEARNT = "learnt"


class UnrewardedPod(NamedTuple):
    """A pod on its node, that no reward has come for."""

    type: str
    node_name: str
    features: Floats
    at: float


class OnlineLearner:
    """A learner (see `framework.pod_outcomes`): the models by type of pods, and what waits for a reward."""

    def __init__(
        self,
        features: tuple[str, ...],
        *,
        forgetting: float,
        within: float,
        annotated: bool = True,
        file: StateFile | None = None,
        report: Callable[[str], None] = lambda _message: None,
    ) -> None:
        self.features = features
        self.classes: list[str] = []
        """Values of the nodes' label that have a feature, in its order."""
        self.models: dict[str, RidgeBandit] = {}
        self.outcomes: Counter[str] = Counter()
        """Rewards that were learnt, or refused, and why."""
        self.sum_of_rewards = 0.0
        self.waiting: OrderedDict[str, UnrewardedPod] = OrderedDict()
        """Placements by uid, the oldest first."""
        self._heard: OrderedDict[str, tuple[str, bool]] = OrderedDict()
        """The last word of pods, by uid, and whether it was learnt from."""
        self._forgetting = forgetting
        self._within = within
        self._annotated = annotated
        self._file = file
        self._report = report
        self._unwritten = self._changed = False
        """Whether there is something that the ConfigMap, or the file, does not have."""
        self._written_at = 0.0
        if file is not None and (text := file.read()) is not None:
            self._take_over(text, "the state file")

    def type_of(self, value: str) -> str:
        """The model that pods of this type have."""
        return value if value in self.models or len(self.models) < MOST_TYPES else OTHERS

    # What happens to pods

    def placed(self, uid: str, placement: UnrewardedPod) -> None:
        self.waiting[uid] = placement
        self._expire(placement.at)

    def heard(self, uid: str, text: str | None, failed: bool, now: float) -> None:
        """What a pod says of itself: its annotation, or that it has failed."""
        if not self._annotated:
            return
        word = text if text is not None else "0" if failed else None
        before = self._heard.get(uid)
        if word is None or (before is not None and (before[0] == word or text is None)):
            return
        learnt = before is not None and before[1]
        outcome = "twice" if learnt else self._judge(uid, read_decimal(word), now)
        self.outcomes[outcome] += 1
        self._heard[uid] = word, learnt or outcome == LEARNT
        if len(self._heard) > MOST_HEARD:
            self._heard.popitem(last=False)

    def reward(self, uid: str, reward: float, now: float) -> None:
        """A reward that was found here, not written by the pod."""
        self.outcomes[self._judge(uid, reward, now)] += 1

    def _judge(self, uid: str, reward: float | None, now: float) -> str:
        if reward is None or not 0 <= reward <= 1:
            return "bad"
        placement = self.waiting.get(uid)
        if placement is None:
            return "unknown"
        del self.waiting[uid]
        if now - placement.at > self._within:
            return "late"
        kind = self.type_of(placement.type)
        if kind not in self.models:
            self.models[kind] = RidgeBandit(len(self.features), self._forgetting)
        self.models[kind].learn(placement.features, reward)
        self.sum_of_rewards += reward
        self._unwritten = self._changed = True
        return LEARNT

    def due(self, before: float, most: int) -> Iterator[tuple[str, UnrewardedPod]]:
        """The oldest placements that were made before a time."""
        found: list[tuple[str, UnrewardedPod]] = []
        for uid, placement in self.waiting.items():
            if placement.at > before or len(found) == most:
                break
            found.append((uid, placement))
        yield from found

    def _expire(self, now: float) -> None:
        """Let go of placements that are too old to learn from; those just beyond tell that a reward is late."""
        waiting = self.waiting
        while waiting:
            oldest = next(iter(waiting.values()))
            if len(waiting) <= MOST_PLACEMENTS and now - oldest.at <= 2 * self._within:
                return
            waiting.popitem(last=False)
            self.outcomes["none"] += 1

    # Keeping

    def observe(self, pod: PodOutcome, now: float) -> bool:
        self.heard(pod.metadata.uid, pod.metadata.annotations.get(REWARD), pod.status.phase == "Failed", now)
        return self._unwritten

    def save(self, now: float) -> dict[str, str]:
        self._unwritten = False
        return {KEY: self._encoded()}

    def restore(self, lessons: Mapping[str, str], now: float) -> None:
        if KEY in lessons:
            self._take_over(lessons[KEY], "the ConfigMap")

    def write(self, now: float) -> None:
        """Write the state file, if that is due."""
        due = self._changed and now - self._written_at >= WRITE_EVERY
        if self._file is not None and due and self._file.write(self._encoded()):
            self._written_at, self._changed = now, False

    def _encoded(self) -> str:
        models = tuple(saved_model(kind, bandit) for kind, bandit in sorted(self.models.items()))
        return encode_state(SavedState(features=self.features, classes=tuple(self.classes), models=models))

    def _take_over(self, text: str | bytes, where: str) -> None:
        """Go on from a text, model by model where it has seen more rewards than this process."""
        try:
            state = decode_state(text, self.features)
            common = min(len(state.classes), len(self.classes))
            if len(state.classes) > MOST_CLASSES or list(state.classes[:common]) != self.classes[:common]:
                raise StateError("its classes of nodes come in another order")
        except StateError as error:
            self.outcomes["state_refused"] += 1
            self._report(f"OnlineScore: what was learnt before is not used: {where}: {error}")
            return
        if len(state.classes) > len(self.classes):
            self.classes = list(state.classes)
        for model in state.models:
            mine = self.models.get(model.type)
            if mine is None and len(self.models) <= MOST_TYPES:
                mine = self.models[model.type] = RidgeBandit(len(self.features), self._forgetting)
            if mine is not None and mine.rewards < model.rewards:
                restore(mine, model)

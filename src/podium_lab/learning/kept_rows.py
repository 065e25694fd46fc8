"""Keeps the rows of an evaluation in a file as they are found, so that one that was stopped goes on.

A line is what one list and seed gave, under a key made of all that it depends on: the contents of both lists, the seed,
who is judged and by which rules. Lines of other evaluations, and a last one that was cut off, do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from podium.kube.documents import FILE, DocumentError, read_json
from podium_lab.learning.extra import LearningError
from podium_lab.learning.jobs import perform
from podium_lab.learning.judge import Question, Row, answer
from podium_lab.learning.lists import find_list, nodes_path


def answered(questions: Sequence[Question], workers: int, file: Path | None) -> Iterator[list[Row]]:
    """The rows of each question, in order: kept ones at once, others when they are found."""
    if file is None:
        yield from perform(answer, questions, workers)
        return
    keys = [_key(question) for question in questions]
    try:
        known = _read(file)
        fresh = perform(answer, [each for each, key in zip(questions, keys, strict=True) if key not in known], workers)
        with file.open("ab") as out:
            for key in keys:
                if key not in known:
                    known[key] = next(fresh)
                    out.write(msgspec.json.encode({"key": key, "rows": known[key]}) + b"\n")
                    out.flush()
                yield known[key]
    except OSError as error:
        raise LearningError(f"{file}: cannot be read and written: {error.strerror}") from None


def _read(file: Path) -> dict[str, list[Row]]:
    known: dict[str, list[Row]] = {}
    if not file.exists():
        return known
    text = file.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            found: Any = read_json(line, bounds=FILE)
            known[found["key"]] = found["rows"]
        except (DocumentError, KeyError, TypeError):
            raise LearningError(f"{file}:{number}: is no row of podium evaluate; write another --keep") from None
    if whole != text:
        file.write_bytes(whole)
    return known


def _key(question: Question) -> str:
    contents = find_list(question.list, question.data).path.read_bytes(), nodes_path(question.data).read_bytes()
    judged = [(each.name, each.digest, each.counted) for each in question.contestants]
    rules = question.label, question.seed, judged, question.ties, question.loads, question.queue
    hashed = [hashlib.sha256(each).hexdigest() for each in contents]
    return hashlib.sha256(msgspec.json.encode((hashed, rules))).hexdigest()

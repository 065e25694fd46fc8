"""The benchmark of questions, in small."""

import msgspec
import pytest

from tests.podium.cli.command import podium


@pytest.mark.long
def test_every_question_is_asked_and_has_an_answer() -> None:
    result = podium("bench", "whatif", "--nodes", "12", "--pods", "60", "--replicas", "20", "-o", "json")
    assert result.code == 0, result.err
    found = {each["question"]: each["answer"] for each in msgspec.json.decode(result.out)}
    assert found["one pod"].startswith("node-")
    assert (found["drain of 6 nodes"], found["capacity to 20 replicas"]) == ("30 pods", "20 fit")
    assert found["--running of 60 pods"] == "60 compared"
    assert len(found) == 7

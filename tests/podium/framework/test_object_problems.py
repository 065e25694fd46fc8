"""What is wrong with an object is said once, and again only when it is something else."""

import pytest

from podium.framework.object_problems import ObjectProblem, ObjectProblems, custom_reference
from podium.kube.meta import ObjectReference

QUOTA = ObjectReference(api_version="x.io/v1", kind="Quota", namespace="team", name="q", uid="1", resource_version="7")


def heard() -> tuple[ObjectProblems, list[str], list[ObjectProblem]]:
    said: list[str] = []
    events: list[ObjectProblem] = []
    problems = ObjectProblems(said.append)
    problems.listener = events.append
    return problems, said, events


def test_the_same_problem_is_said_once() -> None:
    problems, said, events = heard()
    for note in ("is odd", "is odd", "is odder"):
        problems.set(QUOTA, "Odd", note)
    assert said == ["Quota team/q: is odd", "Quota team/q: is odder"]
    assert [each.note for each in events] == ["is odd", "is odder"]
    assert [each.note for each in problems] == ["is odder"]


def test_a_problem_that_was_put_right_is_said_again_when_it_is_back() -> None:
    problems, said, _events = heard()
    problems.set(QUOTA, "Odd", "is odd")
    problems.clear(QUOTA)
    assert list(problems) == []
    problems.set(QUOTA, "Odd", "is odd")
    assert len(said) == 2


def test_what_is_over_is_said_and_not_kept() -> None:
    problems, said, events = heard()
    problems.mention(QUOTA, "Gone", "is gone")
    assert (len(said), len(events), list(problems)) == (1, 1, [])


@pytest.mark.parametrize("item", [None, 3, {}, {"metadata": None}, {"metadata": {"uid": 4}}])
def test_whatever_an_object_holds_it_can_be_referred_to(item: object) -> None:
    found = custom_reference("x.io/v1", "Quota", "team/q", item)
    assert (found.namespace, found.name, found.uid) == ("team", "q", "")

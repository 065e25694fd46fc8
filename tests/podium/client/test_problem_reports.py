import asyncio
from collections.abc import Callable

from podium.client.problem_reports import ProblemReports


def told(story: Callable[[ProblemReports, Callable[[float], None]], None]) -> list[str]:
    """What is reported in the story, which gets a way to let time pass."""
    said: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        real, passed = loop.time, 0.0

        def pass_by(seconds: float) -> None:
            nonlocal passed
            passed += seconds

        loop.time = lambda: real() + passed  # type: ignore[method-assign]
        story(ProblemReports(said.append), pass_by)

    asyncio.run(main())
    return said


def test_a_trouble_is_told_when_it_begins_and_every_half_minute() -> None:
    def story(reports: ProblemReports, pass_by: Callable[[float], None]) -> None:
        for _ in range(70):
            reports.begin("away")
            assert reports.problem == "away"
            pass_by(1)

    assert told(story) == ["away"] * 3


def test_another_trouble_is_told_at_once_and_the_end_once() -> None:
    def story(reports: ProblemReports, pass_by: Callable[[float], None]) -> None:
        reports.end("fine")  # it always was
        reports.begin("away")
        reports.begin("forbidden")
        reports.begin("away")
        assert reports.problem == "away"
        reports.end("fine again")
        reports.end("fine again")
        assert reports.problem is None

    assert told(story) == ["away", "forbidden", "fine again"]


def test_a_trouble_that_comes_and_goes_is_not_told_each_time() -> None:
    def story(reports: ProblemReports, pass_by: Callable[[float], None]) -> None:
        for _ in range(40):
            reports.begin("away")
            reports.end("fine again")
            pass_by(1)

    assert told(story) == ["away", "fine again"] * 2


def test_mishaps_of_one_topic_are_told_once_in_a_while() -> None:
    def story(reports: ProblemReports, pass_by: Callable[[float], None]) -> None:
        for number in range(1000):
            reports.mention(f"object {number} failed", topic="failed")
        reports.mention("something else")
        assert reports.problem is None

    assert told(story) == ["object 0 failed", "something else"]

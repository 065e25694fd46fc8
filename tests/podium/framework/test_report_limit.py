from podium.client.problem_reports import MOST_TOPICS, ReportLimit


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_first_report_is_due_and_then_one_each_interval() -> None:
    time = Time()
    limit = ReportLimit(60.0, time)
    due = []
    for second in range(0, 150, 10):
        time.now = float(second)
        if limit.due("away"):
            due.append(second)
    assert due == [0, 60, 120]


def test_topics_do_not_hide_each_other() -> None:
    limit = ReportLimit(60.0, Time())
    assert limit.due("away")
    assert limit.due(("bind", 403))
    assert not limit.due("away")
    assert not limit.due(("bind", 403))


def test_what_was_skipped_is_counted_until_it_is_asked_for() -> None:
    time = Time()
    limit = ReportLimit(60.0, time)
    for _ in range(4):
        limit.due("away")
    assert limit.take_skipped("away") == 3
    assert limit.take_skipped("away") == 0


def test_many_topics_do_not_fill_the_memory() -> None:
    time = Time()
    limit = ReportLimit(1e9, time)
    for number in range(10 * MOST_TOPICS):
        time.now += 1
        assert limit.due(number)
        limit.due(number)
    assert len(limit._reported) == MOST_TOPICS
    assert len(limit._skipped) == MOST_TOPICS
    assert limit.due(0), "the oldest was forgotten"
    assert not limit.due(10 * MOST_TOPICS - 1)

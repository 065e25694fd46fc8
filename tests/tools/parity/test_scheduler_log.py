"""The log reader on lines as kube-scheduler v1.36 writes them."""

from pathlib import Path

from tools.parity.scheduler_log import SchedulerLog

HEAD = "I1115 17:20:00.123456   4711"


def _read(tmp_path: Path, *lines: str) -> SchedulerLog:
    path = tmp_path / "scheduler.log"
    path.write_text("".join(f"{HEAD} {line}\n" for line in lines))
    log = SchedulerLog(path)
    log.read()
    log.close()
    return log


def test_scores_and_totals_are_kept_in_the_order_of_the_feasible_list(tmp_path: Path) -> None:
    log = _read(
        tmp_path,
        'schedule_one.go:123] "Attempting to schedule pod" pod="a/x"',
        'schedule_one.go:982] "Plugin scored node for pod" pod="a/x" plugin="ImageLocality" node="n2" score=7',
        'schedule_one.go:982] "Plugin scored node for pod" pod="a/x" plugin="ImageLocality" node="n1" score=0',
        'schedule_one.go:1037] "Calculated node\'s final score for pod" pod="a/x" node="n2" score=7',
        'schedule_one.go:1037] "Calculated node\'s final score for pod" pod="a/x" node="n1" score=0',
        'schedule_one.go:481] "Successfully bound pod to node" pod="a/x" node="n2" evaluatedNodes=3 feasibleNodes=2',
    )
    attempt = log.latest("a/x")
    assert attempt is not None
    assert list(attempt.totals.items()) == [("n2", 7), ("n1", 0)]
    assert attempt.scores == {"n2": {"ImageLocality": 7}, "n1": {"ImageLocality": 0}}
    assert (attempt.outcome, attempt.node, attempt.evaluated, attempt.feasible) == ("bound", "n2", 3, 2)


def test_quotes_in_a_failure_text_are_read_back(tmp_path: Path) -> None:
    log = _read(
        tmp_path,
        'schedule_one.go:123] "Attempting to schedule pod" pod="a/x"',
        'schedule_one.go:1250] "Unable to schedule pod; no fit; waiting" pod="a/x" '
        'err="0/2 nodes are available: persistentvolumeclaim \\"c\\" not found. not found"',
    )
    attempt = log.latest("a/x")
    assert attempt is not None
    assert attempt.message == '0/2 nodes are available: persistentvolumeclaim "c" not found. not found'
    assert attempt.outcome == "unschedulable"


def test_victims_belong_to_the_attempt_that_began_last_and_to_their_node(tmp_path: Path) -> None:
    log = _read(
        tmp_path,
        'schedule_one.go:123] "Attempting to schedule pod" pod="a/x"',
        'default_preemption.go:326] "Pod is a potential preemption victim on node" pod="a/v1" node="n1"',
        'default_preemption.go:326] "Pod is a potential preemption victim on node" pod="a/v2" node="n2"',
        'preemption.go:162] "the target node for the preemption is determined" node="n2" pod="a/x"',
    )
    attempt = log.latest("a/x")
    assert attempt is not None
    assert (attempt.target, attempt.victims) == ("n2", ["a/v2"])
    assert attempt.evictions_pending


def test_a_half_written_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.log"
    path.write_text(f'{HEAD} eventhandlers.go:63] "Add event for node" node="n1"\n{HEAD} eventha')
    log = SchedulerLog(path)
    log.read()
    with path.open("a") as more:
        more.write('ndlers.go:63] "Add event for node" node="n0"\n')
    log.read()
    log.close()
    assert log.nodes == ["n1", "n0"]

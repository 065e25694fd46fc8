"""Prints the answers of `podium whatif` for people."""

from typing import TYPE_CHECKING

from podium.cli.console import console, echo, print_table, say, table

if TYPE_CHECKING:
    from podium.whatif.drain_each import EachAnswer
    from podium.whatif.fit import FitAnswer, FitRecord
    from podium.whatif.records import PodRecord

WORDS = {
    "newlyBlocked": "newly blocked",
    "noPlace": "no place",
    "needsFlag": "needs a flag",
    "fits": "fit",
    "moves": "move",
    "quota": "refused by a quota",
}
VERDICTS = {**WORDS, "fits": "fits", "moves": "moves"}
NOWHERE = "–"


def show_fit(answer: "FitAnswer") -> None:
    """The verdict, a row for each pod, then why those without a node have none."""
    out, record = console(), answer.record()
    if not record.pods:
        echo("no pod is on these nodes" if answer.drained is not None else "no pod waits for a node")
        return
    say(out, in_words(record), "bold green" if answer.yes else "bold red")
    with_before = any(each.before and each.origin != "running" for each in record.pods)
    with_ties = any(_ties(each) for each in record.pods)
    rows = table()
    rows.add_column("pod", overflow="fold")
    rows.add_column("verdict", overflow="fold")
    if with_before:
        rows.add_column("before", overflow="fold")
    rows.add_column("node", overflow="fold")
    if with_ties:
        rows.add_column("as good", overflow="fold", style="dim")
    for each in record.pods:
        before = [(each.before.node or NOWHERE) if each.before else ""] if with_before else []
        ties = [some(_ties(each))] if with_ties else []
        rows.add_row(each.pod, VERDICTS.get(each.verdict, each.verdict), *before, each.after.node or NOWHERE, *ties)
    print_table(out, rows)
    for each in record.pods:
        _say_why(each)
    for deadlock in record.deadlock or ():
        echo(f"\n{deadlock.message}")
    if record.rounds:
        echo(f"\nBudgets make the drain wait {record.rounds} times for replacements to become ready.")
    if record.cost:
        echo(f"\nThe added nodes cost {record.cost.per_hour:g} {record.cost.currency} per hour.")


def show_each(answer: "EachAnswer") -> None:
    """A row for each node, then what blocks those that cannot be drained."""
    out, record = console(), answer.record()
    rows = table()
    rows.add_column("node", overflow="fold")
    rows.add_column("pods", justify="right")
    rows.add_column("movable", justify="right")
    rows.add_column("blocked by", overflow="fold")
    for each in record.nodes:
        blockers = [f"{blocker.pod} ({VERDICTS.get(blocker.verdict, blocker.verdict)})" for blocker in each.blocked_by]
        rows.add_row(each.node, str(each.pods), str(each.movable), some(blockers))
    print_table(out, rows)


def _ties(each: "PodRecord") -> list[str]:
    return [name for name in each.after.ties or () if name != each.after.node]


def _say_why(each: "PodRecord") -> None:
    message = each.message or each.after.message
    if message:
        flag = f" (use {each.flag} to override)" if each.flag else ""
        echo(f"\n{each.pod}: {message}{flag}")
    if each.victims:
        echo(f"  preemption makes room on {each.victims.node} by evicting {some(each.victims.pods)}")
    for remedy in each.remedies or ():
        echo(f"  {remedy.node} would take it with {'; '.join(remedy.changes)}")


def in_words(record: "FitRecord") -> str:
    """The summary as a sentence: "2 fit, 1 blocked"."""
    return ", ".join(f"{number} {WORDS.get(word, word)}" for word, number in record.summary.items() if number)


def some(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown

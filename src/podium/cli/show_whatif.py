"""Prints the answers of `podium whatif` for people."""

from typing import TYPE_CHECKING

from podium.cli.console import console, echo, print_table, say, table

if TYPE_CHECKING:
    from podium.whatif.compare import CompareRecord
    from podium.whatif.drain_each import EachAnswer
    from podium.whatif.fit import FitRecord
    from podium.whatif.purchase_records import PurchaseRecord
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


def show_fit(record: "FitRecord", *, yes: bool) -> None:
    """The verdict, a row for each pod, then why those without a node have none."""
    out = console()
    if not record.pods:
        echo("no pod is on these nodes" if record.nodes else "no pod waits for a node")
        return
    say(out, in_words(record), "bold green" if yes else "bold red")
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
    same: dict[tuple[str, ...], list[str]] = {}
    for each in record.pods:
        if lines := _why(each):
            same.setdefault(tuple(lines), []).append(each.pod)
    for (message, *more), pods in same.items():
        echo(f"\n{some(pods)}: {message}" if message else "")
        for line in more:
            echo(f"  {line}")
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


def show_purchase(record: "PurchaseRecord") -> None:
    """What to buy, what each new node holds, and what is proved."""
    out = console()
    solved = record.solved
    if solved and not record.nodes:
        say(out, "no node needs to be bought: every pod has a place", "bold green")
        return
    bought = ", ".join(f"{each.count} × {each.type}{f' in {each.zone}' if each.zone else ''}" for each in record.types)
    proof = (
        "the least price, proved" if record.proved == "optimal" else f"at most {100 * record.gap:.1f} % above the least"
    )
    if record.nodes:
        sentence = f"{bought}: {record.price:g} {record.currency} per hour ({proof})"
        say(
            out,
            sentence if solved else f"{sentence}; not every pod has a place",
            "bold green" if solved else "bold red",
        )
        out.print()
        rows = table()
        rows.add_column("node", overflow="fold")
        rows.add_column("type", overflow="fold")
        rows.add_column("holds", overflow="fold")
        rows.add_column("price", justify="right")
        for node in record.nodes:
            rows.add_row(node.node, node.type, some(node.pods), f"{node.price:g}")
        print_table(out, rows)
    else:
        say(out, "no nodes of the catalog place every pod", "bold red")
    if record.order_sensitive:
        echo("\nA cheaper combination would hold the pods, but not in the order of the queue.")
    if record.runner_up is not None:
        names = ", ".join(f"{number} × {name}" for name, number in record.runner_up.types.items())
        echo(f"\nNext best: {names}: {record.runner_up.price:g} {record.currency} per hour")
    for lost in record.unholdable:
        echo(f"\n{lost.pod}: no type can hold it")
        for name, reason in list(lost.reasons.items())[:4]:
            echo(f"  {name}: {reason}")


def show_comparison(record: "CompareRecord") -> None:
    """The outcomes, then those of each owner with the plugins that tip them."""
    out = console()
    total = len(record.pods)
    if not total:
        echo("no pod to compare")
        return
    counts = ", ".join(f"{number} {outcome}" for outcome, number in record.summary.items() if number)
    agree = record.summary["same"] + record.summary["tie"] == total
    say(out, f"{total} pods: {counts}", "bold green" if agree else "bold red")
    rows = table()
    rows.add_column("owner", overflow="fold")
    rows.add_column("pods", justify="right")
    rows.add_column("outcomes", overflow="fold")
    rows.add_column("tipped by", overflow="fold")
    for each in record.owners:
        if set(each.outcomes) != {"same"}:
            outcomes = ", ".join(f"{number} {outcome}" for outcome, number in each.outcomes.items())
            rows.add_row(each.owner, str(each.pods), outcomes, ", ".join(each.plugins))
    if rows.row_count:
        out.print()
        print_table(out, rows)
    if record.figures is not None:
        out.print()
        figures = table()
        figures.add_column("figure", overflow="fold")
        for name in record.figures:
            figures.add_column(name, justify="right")
        for name in record.figures["old"]:
            figures.add_row(name, *(f"{each[name]:g}" for each in record.figures.values()))
        print_table(out, figures)


def _ties(each: "PodRecord") -> list[str]:
    return [name for name in each.after.ties or () if name != each.after.node]


def _why(each: "PodRecord") -> list[str]:
    """The message of a pod that has one, then what helps."""
    lines = list(each.notes or ())
    if each.victims:
        lines.append(f"preemption makes room on {each.victims.node} by evicting {some(each.victims.pods)}")
    lines += [f"{remedy.node} would take it with {'; '.join(remedy.changes)}" for remedy in each.remedies or ()]
    message = each.message or each.after.message or ""
    flag = f" (use {each.flag} to override)" if message and each.flag else ""
    return [f"{message}{flag}", *lines] if message or lines else []


def in_words(record: "FitRecord") -> str:
    """The summary as a sentence: "2 fit, 1 blocked"."""
    return ", ".join(f"{number} {WORDS.get(word, word)}" for word, number in record.summary.items() if number)


def some(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown

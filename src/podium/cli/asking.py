"""Asks the questions of `podium whatif`, prints the answers, and ends with the code that goes with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from podium.cli.console import echo_data, progress_bar
from podium.cli.errors import ANSWER_IS_NO
from podium.cli.options import Output
from podium.cli.state_source import AskedState, load_state, say_asides

if TYPE_CHECKING:
    from podium.cli.question_options import StateFlags
    from podium.whatif.applying import NodeMaker
    from podium.whatif.catalog import Catalog
    from podium.whatif.changes import Change
    from podium.whatif.drain import DrainRules
    from podium.whatif.manifests import Given
    from podium.whatif.offers import PurchaseRules


@dataclass(frozen=True)
class AskedQuestion:
    """What all questions of `podium whatif` share."""

    state: AskedState
    changes: "Sequence[Change]"
    given: "Given | None"
    replicas: int | None
    with_pending: bool
    preempt: bool
    drain_rules: "DrainRules"
    catalog: "Catalog | None"
    make: "NodeMaker"


def ask_fit(question: AskedQuestion, output: Output) -> None:
    """Would these pods fit, and what becomes of those of drained nodes?"""
    from podium.cli.show_whatif import show_fit
    from podium.whatif.fit import fit

    answer = fit(
        question.state.sandbox(),
        question.changes,
        question.given,
        replicas=question.replicas,
        with_pending=question.with_pending,
        preempt=question.preempt,
        drain_rules=question.drain_rules,
        make=question.make,
        origin=question.state.origin,
    )
    cost = None if question.catalog is None else question.catalog.cost(question.changes)
    record = answer.record(cost)
    if output is Output.TABLE:
        say_asides(question.state)
        show_fit(record, yes=answer.yes)
        _end(answer.yes)
    _answer(question, answer.question(), record, output, yes=answer.yes)


def ask_each(question: AskedQuestion, output: Output) -> None:
    """Could each node be drained alone?"""
    from podium.cli.show_whatif import show_each
    from podium.whatif.drain_each import EachQuestion, drain_each

    answer = drain_each(question.state.sandbox(), question.changes, question.drain_rules)
    if output is Output.TABLE:
        say_asides(question.state)
        show_each(answer)
        _end(answer.yes)
    shown = EachQuestion(changes=answer.changes)
    _answer(question, shown, answer.record(), output, yes=answer.yes)


def ask_unblock(question: AskedQuestion, rules: "PurchaseRules", output: Output) -> None:
    """Which nodes of the catalog are the cheapest that place every pod?"""
    from podium.cli.show_whatif import show_purchase
    from podium.whatif.purchase_records import ask_purchase

    assert question.catalog is not None
    with progress_bar(0, "looking for the cheapest nodes"):
        answer = ask_purchase(
            question.state.sandbox(),
            question.catalog,
            question.changes,
            question.given,
            rules,
            replicas=question.replicas,
            with_pending=question.with_pending,
            make=question.make,
            origin=question.state.origin,
        )
    if output is Output.TABLE:
        say_asides(question.state)
        show_purchase(answer.record)
        _end(answer.yes)
    _answer(question, answer.question, answer.record, output, yes=answer.yes)


def ask_compare(
    question: AskedQuestion, flags: "StateFlags", against: str, running: bool, replace_all: bool, output: Output
) -> None:
    """What would the other configuration decide?"""
    from podium.cli.show_whatif import show_comparison
    from podium.whatif.applying import apply
    from podium.whatif.compare import PENDING, REPLACE_ALL, RUNNING, CompareQuestion, compare
    from podium.whatif.fit import shown_changes

    old_configured = load_state(flags, against, known=question.state.known).configured
    old, new = question.state.sandbox(configured=old_configured), question.state.sandbox()
    applied = apply(old, question.changes, question.make)
    apply(new, question.changes, question.make)
    scope = RUNNING if running else REPLACE_ALL if replace_all else PENDING
    with progress_bar(len(old.cluster.pods) if running else 0, "comparing") as report:
        answer = compare(old, new, scope, lambda done: report(f"{done} pods compared", done))
    record = answer.record()
    if output is Output.TABLE:
        say_asides(question.state)
        show_comparison(record)
        _end(answer.yes)
    shown = CompareQuestion(
        config=flags.config or "", against=against, scope=scope, changes=shown_changes(question.changes, applied)
    )
    _answer(question, shown, record, output, yes=answer.yes)


def _answer(question: AskedQuestion, shown: Any, answer: Any, output: Output, *, yes: bool) -> None:
    from podium.whatif.records import document

    say_asides(question.state)
    echo_data(document("whatif", question.state.record(), shown, answer), output)
    _end(yes)


def _end(yes: bool) -> None:
    raise typer.Exit(0 if yes else ANSWER_IS_NO)

"""Shows and checks policy files (`podium policy`)."""

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.commands import Commands
from podium.cli.console import echo
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import Output, OutputOption

if TYPE_CHECKING:
    from pathlib import Path

    from podium_lab.learning.replay import ReplayedPolicy
    from podium_lab.model_decision_log import LogSummary

app = Commands(name="policy", help="Policies of learned scores.", no_args_is_help=True)

ENOUGH_DECISIONS, MOST_FALLBACKS, MOST_WORSE = 10_000, 0.001, 0.1
"""What must be seen on trial before the model may decide; the last is in points of GPU allocation."""
PolicyArgument = Annotated[str, typer.Argument(metavar="FILE", help="A policy file, or the name of one that ships.")]


@app.callback()
def policy() -> None:
    """Policies of learned scores."""


@app.command("list")
def list_policies(output: OutputOption = Output.TABLE) -> None:
    """List the policies that ship with Podium, and what each is for.

    Example: podium policy list
    """
    from podium.cli.console import console, echo_data, print_table, table
    from podium_lab.learned.policy_file import SHIPPED, path_of, read_policy

    found = [(read_policy(path_of(name)), purpose) for name, purpose in SHIPPED.items()]
    if output is not Output.TABLE:
        listed = [
            {"name": each.name, "version": each.version, "kind": each.kind, "purpose": purpose}
            for each, purpose in found
        ]
        echo_data(listed, output)
        return
    rows = table()
    for heading in ("policy", "kind", "what it is for"):
        rows.add_column(heading, overflow="fold")
    for each, purpose in found:
        rows.add_row(each.name, each.kind, purpose)
    print_table(console(), rows)


@app.command()
def show(file: PolicyArgument, output: OutputOption = Output.TABLE) -> None:
    """Show a policy: its weights, where they come from, and how it was judged.

    Example: podium policy show readable
    """
    from podium.cli.console import console, echo_data, print_table, table
    from podium_lab.learned.policy_file import PolicyError, read_policy
    from podium_plugins.gpu.terms import GROUPS, TERMS

    try:
        found = read_policy(_path(file))
    except PolicyError as error:
        raise InputError(str(error)) from None
    if output is not Output.TABLE:
        echo_data(found, output)
        return
    echo(f"{found.name} {found.version} ({found.kind}), sha256 {found.sha256[:16]}…")
    points = f"points = {found.calibration.offset:g} + {found.calibration.scale:g}·score, rounded, within 0–100"
    echo(points)
    out = console()
    weights = table()
    for heading in ("term", *GROUPS):
        weights.add_column(heading, justify="left" if heading == "term" else "right")
    for term in TERMS:
        row = [found.weights[group].get(term, 0.0) for group in GROUPS]
        if any(row):
            weights.add_row(term, *(f"{weight:.3f}" if weight else "" for weight in row))
    print_table(out, weights)
    network = found.correction()
    if network is not None:
        echo(f"corrected by a network of {len(network.first)} and {len(network.second)} units")
    for name, what in found.provenance.items():
        echo(f"{name}: {_short(what)}")
    for line in found.evaluation:
        echo(", ".join(f"{name} {value}" for name, value in line.items()))


@app.command()
def verify(file: PolicyArgument, output: OutputOption = Output.TABLE) -> None:
    """Check a policy file: checksum, terms, numbers, provenance. Exit code 1 where it cannot be used.

    Example: podium policy verify readable
    """
    from podium.cli.console import echo_data
    from podium_lab.learned.policy_file import PolicyError, read_policy

    path = _path(file)
    try:
        found = read_policy(path)
    except PolicyError as error:
        if output is Output.TABLE:
            echo(str(error), err=True)
        else:
            echo_data({"file": file, "usable": False, "problems": str(error).splitlines()}, output)
        raise typer.Exit(ANSWER_IS_NO) from None
    if output is Output.TABLE:
        echo(f"{found.name} {found.version}: fine")
        return
    names = {"name": found.name, "version": found.version, "sha256": found.sha256}
    echo_data({"file": file, "usable": True, "problems": [], **names}, output)


@app.command()
def export(
    file: PolicyArgument,
    out: Annotated[str, typer.Argument(metavar="OUT", help="The .onnx file to write.")],
) -> None:
    """Write a policy as an ONNX graph: terms of nodes in, scores out. Needs podium[learn].

    LearnedScore uses it with `runtime: onnx`, where it lies beside the policy file with the same name.

    Example: podium policy export network.json network.onnx
    """
    from pathlib import Path

    from podium_lab.learned.policy_file import PolicyError, read_policy
    from podium_lab.learning.extra import LearningError

    try:
        from podium_lab.learning.onnx_export import onnx_bytes

        Path(out).write_bytes(onnx_bytes(read_policy(_path(file))))
    except (LearningError, PolicyError) as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror}") from None
    echo(out)


@app.command()
def report(
    log: Annotated[str, typer.Argument(metavar="FILE", help="What LearnedScore's `log` names.")],
    replay: Annotated[
        str, typer.Option("--replay", metavar="ROWS", help="What podium evaluate --json printed of the policy.")
    ] = "",
    deadline: Annotated[float, typer.Option("--deadline", metavar="MS", min=0, help="The deadline, in ms.")] = 5.0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Sum up the decisions of LearnedScore: who decided, how far model and fallback agree, how long it took.

    Exit code 1 where the model may not decide yet. Wanted are 10,000 comparisons, a fallback that stood in for less
    than 0.1 % of the decisions, 99 % of the answers within the deadline, and a replay in which the policy was not
    worse than BestFit, which the fallback is.

    Example: podium policy report decisions.jsonl --replay rows.json
    """
    from pathlib import Path

    from podium.cli.console import echo_data
    from podium_lab.model_decision_log import sum_up

    path = Path(log)
    if not path.is_file():
        raise InputError(f"{log}: there is no such file; the argument log of LearnedScore names it")
    with path.open("rb") as lines:
        found = sum_up(lines)
    if found.is_empty and path.stat().st_size:
        raise InputError(f"{log}: no line is a decision of LearnedScore; its argument log names the file")
    against = _replayed(replay) if replay else None
    wrong = [*_log_problems(found, deadline / 1000), *_replay_problems(against)]
    if output is Output.TABLE:
        _print_summary(found)
        if against is not None:
            points = f"{against.mean:+.2f} ± {against.margin:.2f} points on {against.seeds} seeds"
            echo(f"replayed: {against.policy} against {against.rule}, {points}")
        echo("ready to decide" if not wrong else f"not yet ready: {'; '.join(wrong)}")
    else:
        data = {"ready": not wrong, "problems": wrong, **found.to_data()}
        echo_data({**data, "replay": None if against is None else against._asdict()}, output)
    raise typer.Exit(ANSWER_IS_NO if wrong else 0)


def _path(policy: str) -> "Path":
    """Where a policy is; raises InputError where there is none."""
    from podium_lab.learned.policy_file import SHIPPED, path_of

    path = path_of(policy)
    if not path.is_file():
        ships = ", ".join(SHIPPED)
        raise InputError(f"{policy}: there is no such file, and no policy of that name; those that ship are {ships}")
    return path


def show_shadow_log(text: str) -> bool:
    """Print what a log says where it is that of LearnedScore."""
    from podium_lab.model_decision_log import sum_up

    found = sum_up(line.encode() for line in text.splitlines())
    _print_summary(found)
    return not found.is_empty


def _print_summary(found: "LogSummary") -> None:
    for source, number in sorted(found.decisions.items()):
        echo(f"decided by {source}: {number}")
    if not found.is_empty:
        echo(f"compared: {found.compared}, same best node {found.agreement:.1%}, rank correlation {found.tau:.2f}")
        echo(f"the model took: median {_time(found.p50)}, 99th percentile {_time(found.p99)}")


def _log_problems(found: "LogSummary", deadline: float) -> list[str]:
    """What a log says against the model."""
    wrong = []
    if found.compared < ENOUGH_DECISIONS:
        wrong.append(f"{found.compared} decisions are compared, {ENOUGH_DECISIONS:,} are wanted")
    if found.fallback_rate >= MOST_FALLBACKS:
        wrong.append(f"the fallback stood in for {found.fallback_rate:.1%} of the decisions")
    if found.p99 > deadline:
        wrong.append(f"the 99th percentile is beyond {1000 * deadline:g} ms")
    return wrong


def _time(seconds: float) -> str:
    """A time of no seconds, in a unit in which it has digits.

    >>> _time(0.0000032), _time(0.0012), _time(0.0)
    ('3.2 µs', '1.2 ms', '0 µs')
    """
    return f"{1e3 * seconds:.3g} ms" if seconds >= 0.001 else f"{1e6 * seconds:.3g} µs"


def _replayed(file: str) -> "ReplayedPolicy":
    """What `podium evaluate --json` printed; raises InputError."""
    from podium.cli.files import read_text
    from podium_lab.learning.replay import ReplayError, replayed

    text, source = read_text(file)
    try:
        return replayed(text.encode())
    except ReplayError as error:
        raise InputError(f"{source}: {error}") from None


def _replay_problems(found: "ReplayedPolicy | None") -> list[str]:
    """What a replay says against the policy; that there is none, too."""
    if found is None:
        return ["nothing was replayed: give --replay what podium evaluate --json prints"]
    if found.mean - found.margin < -MOST_WORSE:
        return [f"the replay does not rule out that {found.policy} is worse than {found.rule}"]
    return []


def _short(what: object) -> str:
    if isinstance(what, list) and len(what) > 6 and all(isinstance(each, int) for each in what):
        return f"{len(what)} from {min(what)} to {max(what)}"
    if isinstance(what, dict):
        return ", ".join(f"{name} {str(value)[:16]}" for name, value in what.items())
    return str(what)

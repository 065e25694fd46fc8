"""Lists kube-scheduler's flags with what becomes of each on the command line of `podium run`."""

from __future__ import annotations

from collections.abc import Mapping

from docs.tables.markdown import code, table
from podium.cli.kube_scheduler_flags import DROPPED, FLAGS, Flag, Gone, Ignored


def page() -> str:
    return f"{_table(FLAGS)}\nFlags of older versions:\n\n{_table(DROPPED)}"


def _table(flags: Mapping[str, Flag]) -> str:
    by_treatment: dict[str, list[str]] = {}
    for name, flag in flags.items():
        by_treatment.setdefault(_treatment(flag), []).append(code(f"--{name}"))
    return table(
        ["flags of kube-scheduler", "here"], [[", ".join(names), here] for here, names in by_treatment.items()]
    )


def _treatment(flag: Flag) -> str:
    match flag:
        case Ignored():
            fits = f"; no warning for {', '.join(map(code, flag.fits))}" if flag.fits else ""
            return f"ignored: {flag.here}{fits}"
        case Gone():
            return f"refused: {flag.here}"
    return flag.here

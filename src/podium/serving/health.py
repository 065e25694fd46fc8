"""Answers `/healthz`, `/livez` and `/readyz` in the words of Kubernetes: probes and people read them.

A check gives None when all is well, else what is wrong. Anybody may ask whether all checks pass, so the summary
withholds reasons; each check's own path (`/readyz/shutdown`), for which one needs permission, tells them. Summaries
take `?verbose` and `?exclude=NAME`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from podium.serving.families import Counters, MetricFamily, ReadFamily, Reading, gauges

Check = Callable[[], str | None]


class HealthAnswer(NamedTuple):
    """A status code and a text."""

    status: int
    text: str


def ping() -> None:
    return None


class Health:
    """One of the three: its name ("readyz") and its checks, in the order they are shown."""

    def __init__(self, name: str, checks: Mapping[str, Check], results: HealthResults) -> None:
        self.name = name
        self._checks = dict(checks) or {"ping": ping}
        self._results = results

    def summary(self, *, verbose: bool = False, exclude: Sequence[str] = ()) -> HealthAnswer:
        lines = []
        well = True
        for name, check in self._checks.items():
            if name in exclude:
                lines.append(f"[+]{name} excluded: ok\n")
            elif self._ask(name, check) is None:
                lines.append(f"[+]{name} ok\n")
            else:
                lines.append(f"[-]{name} failed: reason withheld\n")
                well = False
        unknown = [f'"{name}"' for name in dict.fromkeys(exclude) if name not in self._checks]
        if unknown:
            lines.append(f"warn: some health checks cannot be excluded: no matches for {', '.join(unknown)}\n")
        if not well:
            return HealthAnswer(500, f"{''.join(lines)}{self.name} check failed\n")
        return HealthAnswer(200, f"{''.join(lines)}{self.name} check passed\n" if verbose else "ok")

    def single(self, name: str) -> HealthAnswer | None:
        """One check with its reason; None when there is none of that name."""
        check = self._checks.get(name)
        if check is None:
            return None
        wrong = self._ask(name, check)
        return HealthAnswer(200, "ok") if wrong is None else HealthAnswer(500, f"internal server error: {wrong}\n")

    def _ask(self, name: str, check: Check) -> str | None:
        try:
            wrong = check()
        except Exception as error:  # a check that raises has failed
            wrong = f"the check failed: {type(error).__name__}: {error}"
        self._results.note(self.name, name, wrong is None)
        return wrong


class HealthResults:
    """How checks went: what `/metrics/slis` shows."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, ...], float] = {}
        self._counted = Counters(
            "kubernetes_healthchecks_total", "Health checks made, by how they went.", ("type", "name", "status")
        )
        self.families: list[MetricFamily] = [
            ReadFamily(
                gauges,
                "kubernetes_healthcheck",
                "Whether a health check last went well (1) or not (0).",
                self._read,
                ("type", "name"),
            ),
            self._counted,
        ]

    def note(self, kind: str, name: str, well: bool) -> None:
        self._latest[kind, name] = float(well)
        self._counted.add(kind, name, "success" if well else "error")

    def _read(self) -> Reading:
        return self._latest

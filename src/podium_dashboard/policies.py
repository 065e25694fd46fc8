"""Shows what plugins say of themselves: the QoS table, the numbers of learned policies, and what a shadow found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from podium import packages
from podium.config import to_dict
from podium.config.secrets import without_secrets
from podium.framework.plugin import Plugin
from podium.run.dashboard import SchedulerView
from podium.run.shadow import MEANINGS
from podium_dashboard.access import Viewer
from podium_dashboard.records import (
    DashboardState,
    DifferencesAnswer,
    PluginNumber,
    PolicyAnswer,
    PolicyRow,
    QosAnswer,
)

LEARNING: Final = "Learning"
"""The group of plugins that learn, in the packages' records."""
QOS_PAGE: Final = "qos"
MOST_FINDINGS: Final = 200


def qos_answer(state: DashboardState, viewer: Viewer) -> Callable[[SchedulerView], QosAnswer]:
    """Reads the QoS table, from the page that a plugin offers."""

    def take(view: SchedulerView) -> QosAnswer:
        page = next((found for plugin in _plugins(view) if (found := _page_of(plugin)) is not None), None)
        if page is None:
            return QosAnswer(state=state, served=False, rows=[])
        body = page.answer("/", {}, "application/json").body
        rows: list[dict[str, Any]] = msgspec.json.decode(body)
        return QosAnswer(state=state, served=True, rows=[row for row in rows if _may_see(viewer, row)])

    return take


def _page_of(plugin: Plugin) -> Any:
    page = plugin.page(())
    return page if page is not None and page.name == QOS_PAGE else None


def _may_see(viewer: Viewer, row: Mapping[str, Any]) -> bool:
    return viewer.everything or viewer.sees(str(row.get("namespace", "")))


def _plugins(view: SchedulerView) -> Iterator[Plugin]:
    for runtime in view.engine.profiles.values():
        yield from runtime.plugins.values()


def policy_answer(state: DashboardState) -> Callable[[SchedulerView], PolicyAnswer]:
    """Reads the numbers of the plugins that learn."""

    def take(view: SchedulerView) -> PolicyAnswer:
        known = packages.plugins()
        profiles = without_secrets(to_dict(view.config)).get("profiles", [])
        policies = []
        for runtime, written in zip(view.engine.profiles.values(), profiles, strict=False):
            arguments = {each["name"]: each.get("args") or {} for each in written.get("pluginConfig") or ()}
            for name, plugin in runtime.plugins.items():
                if name in known and known[name].group == LEARNING:
                    numbers = list(_numbers(plugin))
                    policies.append(
                        PolicyRow(profile=runtime.name, plugin=name, arguments=arguments.get(name, {}), numbers=numbers)
                    )
        return PolicyAnswer(state=state, policies=policies)

    return take


def _numbers(plugin: Plugin) -> Iterator[PluginNumber]:
    for metric in plugin.metrics():
        reading = metric.read()
        values = reading if isinstance(reading, Mapping) else {(): reading}
        for labels, value in values.items():
            named = dict(zip(metric.labels, map(str, labels), strict=False))
            yield PluginNumber(name=metric.name, text=metric.text, labels=named, value=float(value))


def differences_answer(state: DashboardState, viewer: Viewer) -> Callable[[SchedulerView], DifferencesAnswer]:
    """Reads what a shadowing scheduler compared."""

    def take(view: SchedulerView) -> DifferencesAnswer:
        shadow = view.shadow
        findings = [] if shadow is None else [each for each in shadow.recent if viewer.sees_key(each.pod)]
        return DifferencesAnswer(
            state=state,
            shadows=shadow is not None,
            counts={} if shadow is None else dict(shadow.counts),
            meanings=MEANINGS,
            findings=findings[-MOST_FINDINGS:][::-1],
        )

    return take

"""Writes the files of the Helm chart that follow from the code: objects to be filled in, and rights by plugin.

    python -m tools.chart deploy/helm/podium/files

A chart cannot run Python. So it has the objects that `podium manifest` prints, with words that its templates replace
(`NAMESPACE`, `IMAGE`, `NAME`), and for each plugin and controller the rules that it needs. The templates put together
those of the plugins that the values enable; a test compares the result with what `podium manifest` prints.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from podium import packages
from podium.client import RESOURCES
from podium.client.resource import WATCHED
from podium.config.defaults import DEFAULT_PLUGINS
from podium.config.load import load_config
from podium.controllers.catalog import choose
from podium.extender.agents import choose as choose_agents
from podium.framework.clock import SystemClock
from podium.framework.plugin import Plugin
from podium.kube.json_object import JsonObject
from podium.manifests import controller, extender
from podium.manifests import scheduler as run
from podium.manifests.objects import to_yaml
from podium.manifests.rights import WRITES, Rights, rule, writes_of
from podium.plugins import load_registry
from podium_plugins.annotate import deployment as annotate

NAMESPACE: Final = "NAMESPACE_OF_THE_RELEASE"
IMAGE: Final = "IMAGE_OF_THE_RELEASE"
NAME: Final = "NAME_OF_THE_SCHEDULER"
BARE: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {disabled: [{name: "*"}]}
    queueSort: {enabled: [{name: PrioritySort}]}
    bind: {enabled: [{name: DefaultBinder}]}
"""
TOGETHER: Final = ("safe,congestion", "safe,pigeon")
"""Agents that are offered together."""


def chart_files() -> dict[str, str]:
    """The text of each file, by its name."""
    registry = load_registry()
    config = load_config(BARE, "bare", registry).config
    plain, shadow = (
        run.RunSettings(name=NAME, namespace=NAMESPACE, image=IMAGE, monitored=True, shadow=shadow)
        for shadow in (False, True)
    )
    controllers = choose([], SystemClock())
    files = {
        "run.yaml": run.manifest(config, "", registry, plain),
        "shadow.yaml": run.manifest(config, "", registry, shadow),
        "controller.yaml": controller.manifest([], NAMESPACE, IMAGE, monitored=True),
        **{f"annotate-{kind}.yaml": annotate.manifest(kind, [], NAMESPACE, IMAGE) for kind in ("usage", "allocation")},
        **{
            f"extender-{names.replace(',', '-')}.yaml": [
                each
                for each in extender.manifest(
                    choose_agents(names.split(","), registry),
                    registry,
                    extender.ExtenderSettings(namespace=NAMESPACE, image=IMAGE),
                )
                if each["kind"] != "Pod"
            ]
            for names in (*packages.agents(), *TOGETHER)
        },
    }
    rights = {
        "default": sorted(each.name for each in DEFAULT_PLUGINS.multi_point.enabled),
        "plugins": {name: rules for name in packages.plugins() if (rules := _rules_of(registry[name]))},
        "controllers": {each.name: controller.controller_rights([each]).cluster_rules for each in controllers},
        "keeps": {
            name: {"namespace": state.config_map.namespace, "configMap": state.config_map.name}
            for name, plugin in registry.items()
            if (state := plugin.learned_state) is not None
        },
        "metricsServer": [rule("metrics.k8s.io", ["nodes"], ["list"])],
        "genericWorkload": [
            rule("scheduling.k8s.io", ["podgroups"], ["list", "watch"]),
            rule("scheduling.k8s.io", ["podgroups/status"], ["patch"]),
        ],
    }
    return {
        **{name: _text(objects) for name, objects in files.items()},
        "rights.yaml": _about() + to_yaml([rights]),
    }


def _rules_of(plugin: type[Plugin]) -> list[JsonObject]:
    """What a plugin adds to the rights of every scheduler."""
    found = Rights()
    for kind in plugin.depends_on.kinds or ():
        if RESOURCES[kind] not in WATCHED:
            found.allow(RESOURCES[kind].group, RESOURCES[kind].plural, "list", "watch")
    for resource in plugin.resources:
        found.allow_watching(resource.partition("/")[0])
    for write in writes_of(plugin):
        for group, name, verb in WRITES[write]:
            found.allow(group, name, verb)
    return found.cluster_rules


def _about() -> str:
    return "# Written by python -m tools.chart; do not edit.\n"


def _text(objects: Iterable[Mapping[str, object]]) -> str:
    return _about() + to_yaml([list(objects)])  # type: ignore[list-item]


def main() -> None:
    """Write the files into the folder that is named."""
    folder = Path(sys.argv[1])
    for name, text in chart_files().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Reads the definitions of the custom resources that Podium's plugins schedule by, one YAML file each."""

from __future__ import annotations

from importlib.resources import files

import yaml

from podium.kube.json_object import JsonObject


def definitions() -> dict[str, JsonObject]:
    """Every CustomResourceDefinition by its plural name, as it is applied.

    >>> list(definitions())[:2]
    ['appgroups', 'elasticquotas']
    """
    folder = files(__package__)
    names = sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))
    return {name: yaml.safe_load(folder.joinpath(f"{name}.yaml").read_text("utf-8")) for name in names}

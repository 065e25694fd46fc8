"""Reads the definitions of the custom resources that plugins and controllers need, one YAML file each."""

from __future__ import annotations

from importlib.resources import files

import yaml

from podium import packages
from podium.kube.json_object import JsonObject


def definitions() -> dict[str, JsonObject]:
    """Every CustomResourceDefinition by its plural name, as it is applied.

    >>> list(definitions())[:2]
    ['appgroups', 'elasticquotas']
    """
    found = {
        file.name.removesuffix(".yaml"): file
        for package in packages.packages()
        for folder in package.custom_resources
        for file in files(folder).iterdir()
        if file.name.endswith(".yaml")
    }
    return {name: yaml.safe_load(found[name].read_text("utf-8")) for name in sorted(found)}

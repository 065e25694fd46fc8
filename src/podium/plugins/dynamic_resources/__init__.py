"""DynamicResources: gives pods the devices that they ask for through resource claims."""

from podium.plugins.dynamic_resources.args import DynamicResourcesArgs
from podium.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources", "DynamicResourcesArgs"]

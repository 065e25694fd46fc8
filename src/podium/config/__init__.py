"""KubeSchedulerConfiguration v1: read with positions, default, merge, check, and write back.

loaded = load_config(text, "scheduler.yaml", registry)
loaded.config.profiles[0].plugins["score"]   # names in running order
loaded.warnings                               # what is legal but probably not meant
"""

from podium.config.defaults import DEFAULT_PLUGINS, DEFAULT_SCHEDULER_NAME
from podium.config.durations import Duration
from podium.config.field import FieldError, FieldPath
from podium.config.load import LoadedConfig, default_config, load_config
from podium.config.points import Point
from podium.config.problems import ConfigError, ConfigProblem
from podium.config.registry import PluginType, Registry
from podium.config.resolved import Profile, SchedulerConfig, to_dict, to_yaml
from podium.config.types import ClientConnection, ExtenderConfig, ExtenderTLS, LeaderElection, ManagedResource

__all__ = [
    "DEFAULT_PLUGINS",
    "DEFAULT_SCHEDULER_NAME",
    "ClientConnection",
    "ConfigError",
    "ConfigProblem",
    "Duration",
    "ExtenderConfig",
    "ExtenderTLS",
    "FieldError",
    "FieldPath",
    "LeaderElection",
    "LoadedConfig",
    "ManagedResource",
    "PluginType",
    "Point",
    "Profile",
    "Registry",
    "SchedulerConfig",
    "default_config",
    "load_config",
    "to_dict",
    "to_yaml",
]

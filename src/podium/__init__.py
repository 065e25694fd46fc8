"""Podium decides where Kubernetes pods run, and lets you change how that is decided, in Python.

What is listed here is the public interface; everything else may change. Write a plugin by deriving from `Plugin`:

>>> from podium import Plugin
>>> class QuietNodes(Plugin):
...     def score_node(self, cycle, node):
...         return 100 if node.labels.get("quiet") == "true" else 0

and ask where a pod would go:

>>> from podium import decode_documents, explain
>>> objects = decode_documents('''
... apiVersion: v1
... kind: Node
... metadata: {name: small}
... status: {allocatable: {cpu: 1, memory: 1Gi, pods: 10}}
... ---
... apiVersion: v1
... kind: Node
... metadata: {name: large}
... status: {allocatable: {cpu: 8, memory: 8Gi, pods: 10}}
... ---
... apiVersion: v1
... kind: Pod
... metadata: {name: web}
... spec: {containers: [{name: web, image: nginx, resources: {requests: {cpu: 2}}}]}
... ''', "example").objects
>>> explain(objects, objects[-1]).selected
'large'

Names are loaded when they are first used, so that `import podium` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.cluster import NodeInfo, Nodes
    from podium.config import ConfigError, SchedulerConfig, default_config, load_config
    from podium.config.durations import SECOND, Duration
    from podium.config.field import FieldError, FieldPath
    from podium.config.types import Int64
    from podium.engine.explain import Explanation, NodeAnswer, explain
    from podium.framework import (
        MAX_SCORE,
        SKIP,
        Action,
        Clock,
        Code,
        Cycle,
        DependsOn,
        Diagnosis,
        Handle,
        Interest,
        NodePart,
        Nomination,
        Normalizer,
        Plugin,
        PluginError,
        PostFilterResult,
        QueuedPod,
        Resource,
        Scores,
        Status,
        Verdict,
        Wait,
        Write,
        truncated_divide,
    )
    from podium.framework.environment import filled
    from podium.framework.events import Hint
    from podium.framework.gang import Gang, GangCount, GangState
    from podium.framework.handle import Effect
    from podium.framework.nominator import Nominator
    from podium.framework.object_problems import ObjectProblems, custom_reference
    from podium.framework.plugin_extras import LabelValues, MetricKind, PageAnswer, PluginMetric, PluginPage
    from podium.framework.row_numbers import RowNumbers, read_decimal, read_whole
    from podium.framework.waiting import WaitingPod
    from podium.kube import DecodeError, Node, Pod, decode_documents
    from podium.load.scaling import as_score, as_scores, rounded
    from podium.placement.resource_usage import DEFAULT_RESOURCES, ResourceSpec
    from podium.plugins import PluginLoadError, load_registry

_HOME = {
    "podium.cluster": (
        "NodeInfo",
        "Nodes",
    ),
    "podium.config": (
        "ConfigError",
        "SchedulerConfig",
        "default_config",
        "load_config",
    ),
    "podium.config.durations": (
        "SECOND",
        "Duration",
    ),
    "podium.config.field": (
        "FieldError",
        "FieldPath",
    ),
    "podium.config.types": ("Int64",),
    "podium.engine.explain": (
        "Explanation",
        "NodeAnswer",
        "explain",
    ),
    "podium.framework": (
        "MAX_SCORE",
        "SKIP",
        "Action",
        "Clock",
        "Code",
        "Cycle",
        "DependsOn",
        "Diagnosis",
        "Handle",
        "Interest",
        "NodePart",
        "Nomination",
        "Normalizer",
        "Plugin",
        "PluginError",
        "PostFilterResult",
        "QueuedPod",
        "Resource",
        "Scores",
        "Status",
        "Verdict",
        "Wait",
        "Write",
        "truncated_divide",
    ),
    "podium.framework.environment": ("filled",),
    "podium.framework.events": ("Hint",),
    "podium.framework.gang": (
        "Gang",
        "GangCount",
        "GangState",
    ),
    "podium.framework.handle": ("Effect",),
    "podium.framework.nominator": ("Nominator",),
    "podium.framework.object_problems": (
        "ObjectProblems",
        "custom_reference",
    ),
    "podium.framework.plugin_extras": (
        "LabelValues",
        "MetricKind",
        "PageAnswer",
        "PluginMetric",
        "PluginPage",
    ),
    "podium.framework.row_numbers": (
        "RowNumbers",
        "read_decimal",
        "read_whole",
    ),
    "podium.framework.waiting": ("WaitingPod",),
    "podium.kube": (
        "DecodeError",
        "Node",
        "Pod",
        "decode_documents",
    ),
    "podium.placement.resource_usage": (
        "DEFAULT_RESOURCES",
        "ResourceSpec",
    ),
    "podium.load.scaling": (
        "as_score",
        "as_scores",
        "rounded",
    ),
    "podium.plugins": (
        "PluginLoadError",
        "load_registry",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "DEFAULT_RESOURCES",
    "MAX_SCORE",
    "SECOND",
    "SKIP",
    "Action",
    "Clock",
    "Code",
    "ConfigError",
    "Cycle",
    "DecodeError",
    "DependsOn",
    "Diagnosis",
    "Duration",
    "Effect",
    "Explanation",
    "FieldError",
    "FieldPath",
    "Gang",
    "GangCount",
    "GangState",
    "Handle",
    "Hint",
    "Int64",
    "Interest",
    "LabelValues",
    "MetricKind",
    "Node",
    "NodeAnswer",
    "NodeInfo",
    "NodePart",
    "Nodes",
    "Nomination",
    "Nominator",
    "Normalizer",
    "ObjectProblems",
    "PageAnswer",
    "Plugin",
    "PluginError",
    "PluginLoadError",
    "PluginMetric",
    "PluginPage",
    "Pod",
    "PostFilterResult",
    "QueuedPod",
    "Resource",
    "ResourceSpec",
    "RowNumbers",
    "SchedulerConfig",
    "Scores",
    "Status",
    "Verdict",
    "Wait",
    "WaitingPod",
    "Write",
    "as_score",
    "as_scores",
    "custom_reference",
    "decode_documents",
    "default_config",
    "explain",
    "filled",
    "load_config",
    "load_registry",
    "read_decimal",
    "read_whole",
    "rounded",
    "truncated_divide",
]


def __getattr__(name: str) -> Any:
    if name == "Scope":
        raise ImportError(
            "podium.Scope is gone: import DependsOn and NodePart, and write depends_on = DependsOn(node=…)"
        )
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'podium' has no attribute {name!r}")
    found = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

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
    from podium.config.field import FieldError, FieldPath
    from podium.engine.explain import Explanation, NodeAnswer, explain
    from podium.framework import (
        SKIP,
        Action,
        Cycle,
        Diagnosis,
        Handle,
        Interest,
        Nomination,
        Normalizer,
        Plugin,
        PluginError,
        PostFilterResult,
        Resource,
        Scope,
        Status,
        Verdict,
        Wait,
        Write,
    )
    from podium.framework.environment import filled
    from podium.framework.plugin import MetricKind, PageAnswer, PluginMetric, PluginPage
    from podium.kube import DecodeError, Node, Pod, decode_documents
    from podium.plugins import PluginLoadError, load_registry

_HOME = {
    "podium.cluster": ("NodeInfo", "Nodes"),
    "podium.config": ("ConfigError", "SchedulerConfig", "default_config", "load_config"),
    "podium.config.field": ("FieldError", "FieldPath"),
    "podium.engine.explain": ("Explanation", "NodeAnswer", "explain"),
    "podium.framework": (
        "SKIP",
        "Action",
        "Cycle",
        "Diagnosis",
        "Handle",
        "Interest",
        "Nomination",
        "Normalizer",
        "Plugin",
        "PluginError",
        "PostFilterResult",
        "Resource",
        "Scope",
        "Status",
        "Verdict",
        "Wait",
        "Write",
    ),
    "podium.framework.environment": ("filled",),
    "podium.framework.plugin": ("MetricKind", "PageAnswer", "PluginMetric", "PluginPage"),
    "podium.kube": ("DecodeError", "Node", "Pod", "decode_documents"),
    "podium.plugins": ("PluginLoadError", "load_registry"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "SKIP",
    "Action",
    "ConfigError",
    "Cycle",
    "DecodeError",
    "Diagnosis",
    "Explanation",
    "FieldError",
    "FieldPath",
    "Handle",
    "Interest",
    "MetricKind",
    "Node",
    "NodeAnswer",
    "NodeInfo",
    "Nodes",
    "Nomination",
    "Normalizer",
    "PageAnswer",
    "Plugin",
    "PluginError",
    "PluginLoadError",
    "PluginMetric",
    "PluginPage",
    "Pod",
    "PostFilterResult",
    "Resource",
    "SchedulerConfig",
    "Scope",
    "Status",
    "Verdict",
    "Wait",
    "Write",
    "decode_documents",
    "default_config",
    "explain",
    "filled",
    "load_config",
    "load_registry",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'podium' has no attribute {name!r}")
    found = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

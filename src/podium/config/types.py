"""Defines KubeSchedulerConfiguration v1, field by field, as it is written in a file.

A field left out, or null, takes the default that stands here. Where kube-scheduler also replaces an explicit zero or
empty string (`qps: 0`), `defaults.py` does it. Numbers carry the width of the Go field, so that a value that would not
fit there is refused here too.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from podium.config.durations import SECOND, Duration

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Common to all parts of the file: camelCase on the wire, read only once loaded."""


class LeaderElection(_Part, frozen=True):
    leader_elect: bool = True
    lease_duration: Duration = Duration(15 * SECOND)
    renew_deadline: Duration = Duration(10 * SECOND)
    retry_period: Duration = Duration(2 * SECOND)
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(_Part, frozen=True):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100


class PluginEntry(_Part, frozen=True):
    """A plugin named in a set. The weight counts only where nodes are scored."""

    name: str = ""
    weight: Int32 | None = None


class PluginSet(_Part, frozen=True):
    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


class Plugins(_Part, frozen=True):
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()

    def by_key(self) -> dict[str, PluginSet]:
        """The sets under their keys in the file: `{"preEnqueue": …, "multiPoint": …}`."""
        return {key: getattr(self, attribute) for attribute, key in _PLUGIN_SET_KEYS.items()}

    @classmethod
    def from_keys(cls, sets: dict[str, PluginSet]) -> "Plugins":
        return cls(**{attribute: sets[key] for attribute, key in _PLUGIN_SET_KEYS.items() if key in sets})


_PLUGIN_SET_KEYS = {each.name: each.encode_name for each in msgspec.structs.fields(Plugins)}


class PluginConfig(_Part, frozen=True):
    """The arguments of one plugin, still as they stand in the file: only the plugin knows their shape."""

    name: str = ""
    args: Any = None


class SchedulerProfile(_Part, frozen=True):
    scheduler_name: str | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderTLS(_Part, frozen=True):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ManagedResource(_Part, frozen=True):
    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderConfig(_Part, frozen=True):
    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLS | None = None
    http_timeout: Duration = Duration(5 * SECOND)
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(_Part, frozen=True):
    api_version: str = API_VERSION
    kind: str = KIND
    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[SchedulerProfile, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()
    delay_cache_until_active: bool = False

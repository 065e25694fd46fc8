"""Calls the extenders of a configuration over HTTP, as kube-scheduler does.

Filter, prioritize and preempt block the decision they belong to, as they do in kube-scheduler; bind runs beside other
work. What is sent are whole objects or, to an extender that keeps its own copy of the nodes (`nodeCacheCapable`), names
and uids.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from podium.config.resolved import SchedulerConfig
from podium.config.secrets import redacted
from podium.config.types import ExtenderConfig, ExtenderTLS
from podium.errors import UserError
from podium.framework.extender import ChosenVictims, Filtered, HostScores, Victims
from podium.kube import Node, Pod
from podium.run.extender_client.calls import LARGEST_REPLY, ExtenderConnections
from podium.run.extender_client.messages import (
    ObjectTexts,
    RawObject,
    binding_args,
    binding_result,
    chosen_victims,
    extender_args,
    filter_result,
    host_scores,
    preemption_args,
)

USUAL_TIMEOUT = 5.0


def build_extenders(
    config: SchedulerConfig,
    raw_pod: RawObject,
    raw_node: RawObject,
    *,
    may_bind: bool = True,
    guard: Callable[[], None] = lambda: None,
) -> list[HttpExtender]:
    """The configured extenders in the order they are called in; raises ExtenderSettingsError for bad certificates.

    raw_pod ("namespace/name") and raw_node (name) give objects as the API server wrote them, or None. `guard` is called
    before one is asked to bind, and may raise to stop that; without `may_bind` none is ever asked to.
    """
    texts = ObjectTexts(raw_pod, raw_node)
    return [
        HttpExtender(extender, texts, may_bind=may_bind, guard=guard) for extender in config.extenders_in_call_order
    ]


class HttpExtender:
    """One configured extender."""

    def __init__(
        self,
        config: ExtenderConfig,
        texts: ObjectTexts,
        *,
        may_bind: bool = True,
        guard: Callable[[], None] = lambda: None,
        largest_reply: int = LARGEST_REPLY,
    ) -> None:
        self.name = redacted(config.url_prefix)
        self.ignorable = config.ignorable
        self.weight = config.weight
        self.is_filter = bool(config.filter_verb)
        self.is_prioritizer = bool(config.prioritize_verb)
        self.is_binder = may_bind and bool(config.bind_verb)
        self.supports_preemption = bool(config.preempt_verb)
        self._config = config
        self._texts = texts
        self._guard = guard
        self._managed = frozenset(resource.name for resource in config.managed_resources)
        timeout = config.http_timeout.seconds
        settled = config.tls_config is not None or config.enable_https or config.url_prefix.lower().startswith("https:")
        self._calls = ExtenderConnections(
            config.url_prefix,
            timeout if timeout > 0 else USUAL_TIMEOUT,
            tls_context(config) if settled else None,
            config.tls_config.server_name if config.tls_config is not None else "",
            largest_reply=largest_reply,
        )

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._calls.close()

    def is_interested(self, pod: Pod) -> bool:
        """Whether it manages a resource that some container names; without managed resources, always."""
        if not self._managed:
            return True
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            if not self._managed.isdisjoint(container.resources.requests):
                return True
            if not self._managed.isdisjoint(container.resources.limits):
                return True
        return False

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        reply = self._calls.begin(self._config.filter_verb, self._args(pod, nodes)).reply()
        return filter_result(reply, by_name=self._config.node_cache_capable)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Callable[[], HostScores]:
        call = self._calls.begin(self._config.prioritize_verb, self._args(pod, nodes))
        return lambda: host_scores(call.reply())

    def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, ChosenVictims]:
        text = None if self._config.node_cache_capable else self._texts.pod
        body = preemption_args(self._texts.pod(pod), victims, text)
        return chosen_victims(self._calls.begin(self._config.preempt_verb, body).reply())

    async def bind(self, pod: Pod, node_name: str) -> None:
        """The extender binds through the API itself; a request that may have arrived is not sent twice."""
        self._guard()
        await asyncio.to_thread(self._bind, binding_args(pod, node_name))

    def _bind(self, body: bytes) -> None:
        binding_result(self._calls.begin(self._config.bind_verb, body, repeatable=False).reply())

    def _args(self, pod: Pod, nodes: Iterable[Node]) -> bytes:
        text = self._texts.pod(pod)
        if self._config.node_cache_capable:
            return extender_args(text, names=[node.name for node in nodes])
        return extender_args(text, nodes=map(self._texts.node, nodes))


class ExtenderSettingsError(UserError):
    """An extender cannot be called with the settings it has; one sentence that says which and why."""


def tls_context(extender: ExtenderConfig) -> ssl.SSLContext:
    """Builds the TLS context for an extender from its configuration.

    Without any setting the system's authorities count. An authority of one's own takes their place. `insecure`
    turns the check off, and so, as in kube-scheduler, does `enableHTTPS` where no authority is given. A certificate
    to be shown needs its key; one without the other is left out.
    """
    settings = extender.tls_config or ExtenderTLS()
    try:
        return _context(settings, unchecked=settings.insecure or (extender.enable_https and not _authority(settings)))
    except (OSError, ValueError) as error:
        detail = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
        raise ExtenderSettingsError(
            f"the certificates of extender {redacted(extender.url_prefix)} cannot be used ({detail}); "
            "look at its tlsConfig in extenders"
        ) from None


def _context(settings: ExtenderTLS, *, unchecked: bool) -> ssl.SSLContext:
    authority = _authority(settings)
    context = ssl.create_default_context(cadata=authority.decode()) if authority else ssl.create_default_context()
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 sets it; Go, and so Kubernetes, does not
    if unchecked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = _text(settings.cert_data, settings.cert_file)
    key = _text(settings.key_data, settings.key_file)
    if certificate and key:
        with tempfile.TemporaryDirectory() as folder:  # certificates can only be loaded from files
            both = Path(folder) / "pair"
            both.touch(mode=0o600)
            both.write_bytes(certificate + b"\n" + key)
            context.load_cert_chain(both)
    return context


def _authority(settings: ExtenderTLS) -> bytes:
    return _text(settings.ca_data, settings.ca_file)


def _text(data: bytes, path: str) -> bytes:
    """What is given in place goes before what is given as a file."""
    return data or (Path(path).read_bytes() if path else b"")

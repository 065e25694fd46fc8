"""Finds the node that a measured series belongs to.

Metrics know nodes by whatever label their scrape configuration left on them: the node's name, or the address the
exporter was scraped at. The text of a label leads to a node

1. by its name (`node-a`), else
2. by one of its addresses, of any type: InternalIP, Hostname, … (`10.0.0.7`, `fd00::7`, `node-a.example.com`);

each with or without a port behind it. What is measured of a pod leads to the node that the pod is on. An address that
two nodes claim leads to neither: a wrong number is worse than none. Where no label says any of that, a relabelling (as
Prometheus does it: the regex must match the whole value) turns what there is into a name or an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from podium.kube import Node
from podium.load.series import NodeMatch, python_replacement

USUAL_LABELS = ("node", "kubernetes_node", "nodename", "instance")
"""Looked at in this order where no label is configured."""


class NodeIndex:
    """Nodes by name and by address, and the nodes of pods by "namespace/name"."""

    def __init__(self, nodes: Iterable[Node] = (), pods: Mapping[str, str] | None = None) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: Mapping[str, str] = {} if pods is None else pods
        self._by_address: dict[str, str | None] = {}
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        self.nodes[node.name] = node
        for text in {each.address.lower() for each in node.status.addresses}:
            taken = self._by_address.setdefault(text, node.name)
            if taken != node.name:
                self._by_address[text] = None

    def by_name(self, text: str) -> str | None:
        if text in self.nodes:
            return text
        host = without_port(text)
        return host if host in self.nodes else None

    def by_address(self, text: str) -> str | None:
        addresses, text = self._by_address, text.lower()
        return addresses[text] if text in addresses else addresses.get(without_port(text))

    def either(self, text: str) -> str | None:
        nodes, addresses = self.nodes, self._by_address
        if text in nodes:
            return text
        host = without_port(text)
        if host in nodes:
            return host
        text = text.lower()
        return addresses[text] if text in addresses else addresses.get(host.lower())


Matcher = Callable[[Mapping[str, str]], str | None]
"""The labels of a series → the name of its node; None: it belongs to none."""


def matcher(match: NodeMatch, nodes: NodeIndex) -> Matcher:
    if match.by == "pod":
        return _by_pod(match, nodes)
    look_up = {"either": nodes.either, "name": nodes.by_name, "address": nodes.by_address}[match.by]
    if not match.label:

        def by_usual_labels(labels: Mapping[str, str]) -> str | None:
            for label in USUAL_LABELS:
                text = labels.get(label)
                if text and (name := look_up(text)):
                    return name
            return None

        return by_usual_labels
    rewrite = _rewriter(match)

    def by_label(labels: Mapping[str, str]) -> str | None:
        text = rewrite(labels.get(match.label, ""))
        return look_up(text) if text else None

    return by_label


def _by_pod(match: NodeMatch, nodes: NodeIndex) -> Matcher:
    label, rewrite = match.label or "pod", _rewriter(match)

    def by_pod(labels: Mapping[str, str]) -> str | None:
        pod = rewrite(labels.get(label, ""))
        node = nodes.pods.get(f"{labels.get('namespace', '')}/{pod}")
        return node if node in nodes.nodes else None

    return by_pod


def _rewriter(match: NodeMatch) -> Callable[[str], str | None]:
    if not match.regex:
        return lambda text: text
    pattern = re.compile(match.regex)
    template = python_replacement(pattern, match.replacement)

    def rewrite(text: str) -> str | None:
        found = pattern.fullmatch(text)
        return None if found is None else found.expand(template)

    return rewrite


def without_port(text: str) -> str:
    """`10.0.0.7:9100` → `10.0.0.7`, `[fd00::7]:9100` → `fd00::7`; a bare IPv6 address stays whole."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    host, colon, port = text.rpartition(":")
    return host if colon and port.isdecimal() and ":" not in host else text

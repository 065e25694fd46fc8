"""Says whether a ResourceQuota or a LimitRange of its namespace would refuse a pod, as admission would.

A quota counts what is used (by its status, else by the pods that are there) and what pods before this one took.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kubecel.quantity import NANO, QuantityError, format_nano, parse
from podium.kube import Container, Pod
from podium.kube.pod_qos import BEST_EFFORT, qos_class_of
from podium.kube.requests import exact_limits, exact_requests

QUOTAS: Final = "resourcequotas"
LIMIT_RANGES: Final = "limitranges"
_BARE: Final = ("cpu", "memory", "ephemeral-storage")


class NamespaceRules:
    """The quotas and limit ranges of all namespaces, with what has been used so far."""

    def __init__(self, quotas: Iterable[Mapping[str, Any]], ranges: Iterable[Mapping[str, Any]], pods: Iterable[Pod]):
        self._quotas: dict[str, list[_Quota]] = {}
        self._ranges: dict[str, list[Mapping[str, Any]]] = {}
        for each in ranges:
            self._ranges.setdefault(_namespace(each), []).append(each)
        for each in quotas:
            self._quotas.setdefault(_namespace(each), []).append(_Quota(each))
        unused = [quota for quotas_here in self._quotas.values() for quota in quotas_here if not quota.has_status]
        if unused:
            for pod in pods:
                for quota in self._quotas.get(pod.namespace, ()):
                    if not quota.has_status and quota.covers(pod) and not pod.finished:
                        quota.take(pod)

    def __bool__(self) -> bool:
        return bool(self._quotas or self._ranges)

    def with_defaults(self, pod: Pod) -> Pod:
        """The pod with the requests and limits that limit ranges fill in."""
        for each in self._ranges.get(pod.namespace, ()):
            for limit in (each.get("spec") or {}).get("limits") or ():
                if limit.get("type") == "Container":
                    spec = pod.spec
                    pod = replace(
                        pod,
                        spec=replace(
                            spec,
                            containers=tuple(_defaulted(one, limit) for one in spec.containers),
                            init_containers=tuple(_defaulted(one, limit) for one in spec.init_containers),
                        ),
                    )
        return pod

    def refusal(self, pod: Pod) -> str | None:
        """Why admission would refuse the pod, in its words; else its share is taken."""
        for each in self._ranges.get(pod.namespace, ()):
            why = _out_of_range(pod, each)
            if why is not None:
                return why
        quotas = [quota for quota in self._quotas.get(pod.namespace, ()) if quota.covers(pod)]
        for quota in quotas:
            why = quota.refusal(pod)
            if why is not None:
                return why
        for quota in quotas:
            quota.take(pod)
        return None

    def shortages(self, pod: Pod) -> list[str]:
        """What quotas would have to allow more of for the pod to be let in; empty where no amount would do."""
        if any(_out_of_range(pod, each) is not None for each in self._ranges.get(pod.namespace, ())):
            return []
        quotas = [quota for quota in self._quotas.get(pod.namespace, ()) if quota.covers(pod)]
        if any(quota.unstated(pod) for quota in quotas):
            return []
        return [each for quota in quotas for each in quota.shortages(pod)]


class _Quota:
    """One ResourceQuota, in exact amounts."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        spec, status = data.get("spec") or {}, data.get("status") or {}
        self.name = data["metadata"]["name"]
        self.hard = _amounts(status.get("hard") or spec.get("hard") or {})
        self.has_status = bool(status.get("used"))
        self.used = dict.fromkeys(self.hard, 0) | _amounts(status.get("used") or {})
        self._scopes = [(each, "Exists", ()) for each in spec.get("scopes") or ()]
        for each in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
            self._scopes.append((each.get("scopeName"), each.get("operator"), tuple(each.get("values") or ())))

    def covers(self, pod: Pod) -> bool:
        return all(_in_scope(pod, *each) for each in self._scopes)

    def refusal(self, pod: Pod) -> str | None:
        requested, missing = self._requested(pod), self.unstated(pod)
        if missing:
            return f"failed quota: {self.name}: must specify {','.join(missing)} for: {_containers(pod)}"
        over = sorted(
            name for name, amount in requested.items() if amount and self.used[name] + amount > self.hard[name]
        )
        if not over:
            return None
        parts = [
            ",".join(f"{name}={_shown(name, amounts[name])}" for name in over)
            for amounts in (requested, self.used, self.hard)
        ]
        return f"exceeded quota: {self.name}, requested: {parts[0]}, used: {parts[1]}, limited: {parts[2]}"

    def unstated(self, pod: Pod) -> list[str]:
        """What the quota limits and the pod says nothing of, which is refused whatever the amounts."""
        requested = self._requested(pod)
        return sorted(name for name in self.hard if name not in requested and name.split(".")[-1] in _BARE)

    def shortages(self, pod: Pod) -> list[str]:
        missing = {
            name: self.used[name] + amount - self.hard[name]
            for name, amount in sorted(self._requested(pod).items())
            if amount
        }
        return [
            f"{_shown(name, amount)} more {name} in ResourceQuota {pod.namespace}/{self.name}"
            for name, amount in missing.items()
            if amount > 0
        ]

    def take(self, pod: Pod) -> None:
        for name, amount in self._requested(pod).items():
            self.used[name] += amount

    def _requested(self, pod: Pod) -> dict[str, int]:
        """What the pod counts for, of what the quota limits; amounts that no container states are left out."""
        requests, limits = exact_requests(pod), exact_limits(pod)
        found = {}
        for name in self.hard:
            if name in ("pods", "count/pods"):
                found[name] = NANO
            elif name.startswith("limits."):
                if (resource := name.removeprefix("limits.")) in limits:
                    found[name] = limits[resource]
            else:
                resource = name.removeprefix("requests.")
                if resource in requests:
                    found[name] = requests[resource]
        return found


def _in_scope(pod: Pod, scope: str, operator: str, values: tuple[str, ...]) -> bool:
    match scope:
        case "BestEffort":
            return qos_class_of(pod) == BEST_EFFORT
        case "NotBestEffort":
            return qos_class_of(pod) != BEST_EFFORT
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
        case "PriorityClass":
            name = pod.spec.priority_class_name
            return {
                "In": name in values,
                "NotIn": name not in values,
                "Exists": bool(name),
                "DoesNotExist": not name,
            }.get(operator, True)
    return True


def _out_of_range(pod: Pod, limit_range: Mapping[str, Any]) -> str | None:
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        kind = limit.get("type")
        if kind == "Container":
            for container in (*pod.spec.containers, *pod.spec.init_containers):
                requests = _amounts(container.resources.requests)
                limits = _amounts(container.resources.limits)
                why = _between(kind, limit, requests, limits)
                if why is not None:
                    return why
        elif kind == "Pod":
            why = _between(kind, limit, exact_requests(pod), exact_limits(pod))
            if why is not None:
                return why
    return None


def _between(kind: str, limit: Mapping[str, Any], requests: Mapping[str, int], limits: Mapping[str, int]) -> str | None:
    for name, least in _amounts(limit.get("min") or {}).items():
        shown = format_nano(least, binary=name != "cpu")
        if name not in requests:
            return f"minimum {name} usage per {kind} is {shown}.  No request is specified"
        if requests[name] < least:
            return f"minimum {name} usage per {kind} is {shown}, but request is {_shown(name, requests[name])}"
    for name, most in _amounts(limit.get("max") or {}).items():
        shown = format_nano(most, binary=name != "cpu")
        if name not in limits:
            return f"maximum {name} usage per {kind} is {shown}.  No limit is specified"
        if limits[name] > most:
            return f"maximum {name} usage per {kind} is {shown}, but limit is {_shown(name, limits[name])}"
    return None


def _defaulted(container: Container, limit: Mapping[str, Any]) -> Container:
    """The container with the range's defaults: limits from `default`, requests from `defaultRequest`."""
    resources = container.resources
    limits = {**(limit.get("default") or {}), **resources.limits}
    preset = limit.get("defaultRequest") or {}
    filled = {name: amount for name, amount in preset.items() if name not in resources.limits}
    requests = {**limits, **filled, **resources.requests}
    return replace(container, resources=replace(resources, limits=limits, requests=requests))


def _amounts(resources: Mapping[str, Any]) -> dict[str, int]:
    found = {}
    for name, amount in resources.items():
        try:
            found[name] = parse(amount)
        except (QuantityError, TypeError):
            continue
    return found


def _shown(name: str, amount: int) -> str:
    return format_nano(amount, binary="memory" in name or "storage" in name)


def _containers(pod: Pod) -> str:
    return ",".join(each.name for each in pod.spec.containers)


def _namespace(data: Mapping[str, Any]) -> str:
    return str(data["metadata"].get("namespace") or "default")

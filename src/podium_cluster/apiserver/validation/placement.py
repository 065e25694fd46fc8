"""Validates where a pod may run: node and pod affinity, tolerations, spreading, scheduling gates."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from kubecel.names import label_value_errors, qualified_name_errors
from podium_cluster.apiserver.errors import (
    Cause,
    duplicate,
    field_forbidden,
    invalid_value,
    invalid_word,
    not_supported,
    required,
)
from podium_cluster.apiserver.validation.wording import (
    NOT_POSITIVE,
    Causes,
    Obj,
    dns_label,
    dns_subdomain,
    each,
    expression_operator,
    label_name,
    label_values,
    selector,
)

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NODE_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
INCLUSION: Final = ("Honor", "Ignore")
_RANGE: Final = "must be in the range 1-100"


def affinity(path: str, value: Obj) -> Causes:
    node = value.get("nodeAffinity")
    if node is not None:
        yield from _node_affinity(f"{path}.nodeAffinity", node)
    for name in ("podAffinity", "podAntiAffinity"):
        if value.get(name) is not None:
            yield from _pod_affinity(f"{path}.{name}", value[name])


def _node_affinity(path: str, value: Obj) -> Causes:
    if value.get(REQUIRED) is not None:
        yield from node_selector(f"{path}.{REQUIRED}", value[REQUIRED])
    for at, term in enumerate(value.get(PREFERRED) or ()):
        field = f"{path}.{PREFERRED}[{at}]"
        yield from _weight(field, term)
        yield from _node_term(f"{field}.preference", term.get("preference") or {}, any_value=True)


def node_selector(path: str, value: Obj) -> Causes:
    terms = value.get("nodeSelectorTerms")
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for at, term in enumerate(terms):
        yield from _node_term(f"{path}.nodeSelectorTerms[{at}]", term, any_value=False)


def _node_term(path: str, term: Obj, *, any_value: bool) -> Causes:
    for at, expression in enumerate(term.get("matchExpressions") or ()):
        field = f"{path}.matchExpressions[{at}]"
        yield from expression_operator(field, expression, NODE_OPERATORS)
        yield from label_name(f"{field}.key", expression.get("key", ""))
        if not any_value:
            yield from label_values(field, expression)
    for at, expression in enumerate(term.get("matchFields") or ()):
        yield from _node_field(f"{path}.matchFields[{at}]", expression)


def _node_field(path: str, expression: Obj) -> Causes:
    operator, key = expression.get("operator", ""), expression.get("key", "")
    values = expression.get("values") or ()
    if operator not in ("In", "NotIn"):
        yield invalid_word(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if key != "metadata.name":
        yield invalid_value(f"{path}.key", key, "not a valid field selector key")
        return
    for at, value in enumerate(values):
        yield from dns_subdomain(f"{path}.values[{at}]", value)


def _pod_affinity(path: str, value: Obj) -> Causes:
    for at, term in enumerate(value.get(REQUIRED) or ()):
        yield from _pod_term(f"{path}.{REQUIRED}[{at}]", term)
    for at, weighted in enumerate(value.get(PREFERRED) or ()):
        field = f"{path}.{PREFERRED}[{at}]"
        yield from _weight(field, weighted)
        yield from _pod_term(f"{field}.podAffinityTerm", weighted.get("podAffinityTerm") or {})


def _weight(path: str, term: Obj) -> Causes:
    if not 1 <= term.get("weight", 0) <= 100:
        yield invalid_value(f"{path}.weight", term.get("weight", 0), _RANGE)


def _pod_term(path: str, term: Obj) -> Causes:
    yield from selector(f"{path}.labelSelector", term.get("labelSelector"))
    yield from selector(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for namespace in term.get("namespaces") or ():
        yield from dns_label(f"{path}.namespace", namespace)
    yield from _label_keys(path, term)
    key = term.get("topologyKey", "")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from label_name(f"{path}.topologyKey", key)


def _label_keys(path: str, term: Obj) -> Causes:
    """Keys whose values are taken from the pod itself; they need a selector and may not repeat what it says."""
    chosen = term.get("labelSelector")
    match, mismatch = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    for name, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and chosen is None:
            yield field_forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set")
            continue
        for at, key in enumerate(keys):
            yield from label_name(f"{path}.{name}[{at}]", key)
    if chosen is not None:
        used_keys = set(chosen.get("matchLabels") or ())
        for expression in chosen.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in match and key in used_keys:
                detail = "exists in both matchLabelKeys and labelSelector"
                last = max(at for at, each_key in enumerate(match) if each_key == key)
                yield invalid_value(f"{path}[{last}]", key, detail)
            used_keys.add(key)
    for at, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid_value(f"{path}.matchLabelKeys[{at}]", key, detail)


def tolerations(path: str, given: list[dict[str, Any]]) -> Causes:
    for at, toleration in enumerate(given):
        field, key, operator = f"{path}[{at}]", toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            yield from label_name(f"{field}.key", key)
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid_value(f"{field}.operator", operator, detail)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid_value(f"{field}.effect", effect, detail)
        yield from _toleration_value(field, operator, value)
        if effect and effect not in EFFECTS:
            yield not_supported(f"{field}.effect", effect, EFFECTS)


def _toleration_value(field: str, operator: str, value: str) -> Causes:
    match operator:
        case "" | "Equal":
            complaints = label_value_errors(value)
            if complaints:
                yield invalid_value(f"{field}.operator", value, ";".join(complaints))
        case "Exists":
            if value:
                yield invalid_value(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'")
        case "Lt" | "Gt":  # known, but behind a feature gate that is off
            yield not_supported(f"{field}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
        case _:
            yield not_supported(f"{field}.operator", operator, ("Equal", "Exists"))


def spread_constraints(path: str, given: list[dict[str, Any]]) -> Causes:
    actions = [(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in given]
    to_come = Counter(actions)
    for at, constraint in enumerate(given):
        field = f"{path}[{at}]"
        key, action = actions[at]
        to_come[actions[at]] -= 1
        if constraint.get("maxSkew", 0) <= 0:
            yield invalid_value(f"{field}.maxSkew", constraint.get("maxSkew", 0), NOT_POSITIVE)
        if not key:
            yield required(f"{field}.topologyKey", "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            yield not_supported(f"{field}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        if to_come[actions[at]]:
            yield duplicate(f"{field}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        yield from _min_domains(f"{field}.minDomains", constraint.get("minDomains"), action)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(policy) is not None and constraint[policy] not in INCLUSION:
                yield not_supported(f"{field}.{policy}", constraint[policy], INCLUSION)
        yield from _label_keys(field, {**constraint, "mismatchLabelKeys": ()})
        yield from selector(f"{field}.labelSelector", constraint.get("labelSelector"))


def _min_domains(field: str, domains: int | None, action: str) -> Causes:
    if domains is None:
        return
    if domains <= 0:
        yield invalid_value(field, domains, NOT_POSITIVE)
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid_value(field, domains, detail)


def scheduling_gates(path: str, gates: list[dict[str, Any]]) -> Causes:
    seen: set[str] = set()
    for at, gate in enumerate(gates):
        name = gate.get("name", "")
        yield from each(f"{path}[{at}]", name, qualified_name_errors(name))
        if name in seen:
            yield duplicate(f"{path}[{at}]", name)
        seen.add(name)


def taints(path: str, given: list[dict[str, Any]]) -> Causes:
    seen: set[tuple[str, str]] = set()
    for at, taint in enumerate(given):
        field, key, effect = f"{path}[{at}]", taint.get("key", ""), taint.get("effect", "")
        yield from label_name(f"{field}.key", key)
        complaints = label_value_errors(taint.get("value", ""))
        if complaints:
            yield invalid_value(f"{field}.value", taint["value"], ";".join(complaints))
        if not effect:
            yield required(f"{field}.effect")
        elif effect not in EFFECTS:
            yield not_supported(f"{field}.effect", effect, EFFECTS)
        if (effect, key) in seen:
            yield _repeated(field, taint)
        seen.add((effect, key))


def _repeated(field: str, taint: Obj) -> Cause:
    found = duplicate(
        field,
        {
            "Key": taint.get("key", ""),
            "Value": taint.get("value", ""),
            "Effect": taint.get("effect", ""),
            "TimeAdded": taint.get("timeAdded"),
        },
    )
    return found._replace(message=f"{found.message}: taints must be unique by key and effect pair")

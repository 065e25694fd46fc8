"""Random selectors, affinity terms, spread constraints and tolerations, with every operator and odd corner.

Empty selectors, absent selectors, unused keys, numbers that do not parse and terms that contradict each other are
all legal in the API and all decide something, so they appear here on purpose.
"""

from collections.abc import Mapping
from typing import Any

from tools.parity.dice import (
    HOSTNAME,
    NAMESPACE_LABELS,
    NAMESPACES,
    NODE_LABELS,
    POD_LABELS,
    RACK,
    REGION,
    TAINTS,
    ZONE,
    ZONES,
    Dice,
    Obj,
)

TOPOLOGY_KEYS = {ZONE: 4.0, HOSTNAME: 4.0, RACK: 2.0, REGION: 1.0, "nowhere": 0.3}


def label_selector(dice: Dice, words: Mapping[str, tuple[str, ...]]) -> Obj:
    """A label selector over these words; now and then `{}`."""
    roll = dice.random()
    if roll < 0.07:
        return {}
    if roll < 0.55:
        return {"matchLabels": {key: dice.pick(words[key]) for key in dice.some(list(words), 1, 1)}}
    if roll < 0.65:
        return {"matchLabels": {key: dice.pick(words[key]) for key in dice.some(list(words), 2, 2)}}
    keys = dice.some([*words, "nothing"], 1, 2)
    expressions = [_expression(dice, key, words.get(key, ("thing",))) for key in keys]
    return {"matchExpressions": expressions}


def _expression(dice: Dice, key: str, values: tuple[str, ...]) -> Obj:
    operator = dice.weighted({"In": 4, "NotIn": 2, "Exists": 2, "DoesNotExist": 1})
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": dice.some(values, 1, 2)}


def node_selector(dice: Dice, node_names: list[str]) -> Obj:
    """The plain nodeSelector map."""
    key = dice.pick((*NODE_LABELS, ZONE, HOSTNAME))
    values = {ZONE: ZONES, HOSTNAME: tuple(node_names)}.get(key) or NODE_LABELS[key]
    return {key: dice.pick(values)}


def node_term(dice: Dice, node_names: list[str], pinned: float) -> Obj:
    """One node selector term: labels, now and then the node's name, rarely nothing at all."""
    if dice.chance(0.02):
        return {}
    term: Obj = {}
    if dice.chance(pinned):
        fields = []
        for _ in range(2 if dice.chance(0.4) else 1):
            name = dice.pick([*node_names, "no-such-node"])
            fields.append({"key": "metadata.name", "operator": dice.pick(("In", "In", "NotIn")), "values": [name]})
        term["matchFields"] = fields
        if dice.chance(0.6):
            return term
    term["matchExpressions"] = [_node_requirement(dice, node_names) for _ in range(dice.randint(1, 2))]
    return term


def _node_requirement(dice: Dice, node_names: list[str]) -> Obj:
    words: dict[str, tuple[str, ...]] = {**NODE_LABELS, ZONE: ZONES, HOSTNAME: tuple(node_names), RACK: ("k1", "k2")}
    key = dice.pick([*words, "gen", "gen"])
    operators = {"In": 4.0, "NotIn": 2.0, "Exists": 2.0, "DoesNotExist": 1.0}
    if key == "gen":
        operators |= {"Gt": 4.0, "Lt": 4.0}
    operator = dice.weighted(operators)
    requirement: Obj = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        requirement["values"] = dice.some(words[key], 1, 2)
    elif operator in ("Gt", "Lt"):
        requirement["values"] = [dice.pick(("0", "2", "4", "03", "9"))]
    return requirement


def node_affinity(dice: Dice, node_names: list[str], pinned: float) -> Obj:
    affinity: Obj = {}
    if dice.chance(0.5):
        terms = [node_term(dice, node_names, pinned) for _ in range(dice.randint(1, 2))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if dice.chance(0.7) or not affinity:
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.pick((1, 10, 37, 50, 100)), "preference": node_term(dice, node_names, pinned=0.05)}
            for _ in range(dice.randint(1, 3))
        ]
    return affinity


def pod_affinities(dice: Dice, labels: Obj, required: float) -> Obj:
    """podAffinity and podAntiAffinity of one pod."""
    affinity: Obj = {}
    for kind, share in (("podAffinity", 0.6), ("podAntiAffinity", 0.6)):
        if not dice.chance(share):
            continue
        block: Obj = {}
        if dice.chance(required):
            block["requiredDuringSchedulingIgnoredDuringExecution"] = [
                pod_term(dice, labels) for _ in range(2 if dice.chance(0.2) else 1)
            ]
        if dice.chance(0.6):
            block["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": dice.pick((1, 10, 29, 63, 100)), "podAffinityTerm": pod_term(dice, labels)}
                for _ in range(dice.randint(1, 2))
            ]
        if block:
            affinity[kind] = block
    return affinity


def pod_term(dice: Dice, labels: Obj) -> Obj:
    """One pod affinity term, often one that the pod itself matches."""
    term: Obj = {"topologyKey": dice.weighted(TOPOLOGY_KEYS)}
    own = [key for key in POD_LABELS if key in labels]
    if own and dice.chance(0.4):
        key = dice.pick(own)
        term["labelSelector"] = {"matchLabels": {key: labels[key]}}
    elif dice.chance(0.95):
        term["labelSelector"] = label_selector(dice, POD_LABELS)
    if dice.chance(0.25):
        term["namespaces"] = dice.some(NAMESPACES, 1, 2)
    if dice.chance(0.35):
        term["namespaceSelector"] = dice.pick(
            (
                {},
                label_selector(dice, NAMESPACE_LABELS),
                {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]},
                {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod", "test"]}]},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            )
        )
    free = _keys_not_selected(term.get("labelSelector"))
    if free and dice.chance(0.2):
        term["matchLabelKeys"] = [free[0]]
    elif free and dice.chance(0.12):
        term["mismatchLabelKeys"] = [free[-1]]
    return term


def _keys_not_selected(selector: Any) -> list[str]:
    if selector is None:
        return []
    used = set(selector.get("matchLabels", {})) | {each["key"] for each in selector.get("matchExpressions", [])}
    return [key for key in POD_LABELS if key not in used]


def spread_constraints(dice: Dice, labels: Obj, hard: float) -> list[Obj]:
    """Spread constraints with every field; no two with the same key and action, which the API refuses."""
    constraints: dict[tuple[str, str], Obj] = {}
    for _ in range(dice.randint(1, 3)):
        key = dice.weighted(TOPOLOGY_KEYS)
        action = "DoNotSchedule" if dice.chance(hard) else "ScheduleAnyway"
        constraint: Obj = {
            "maxSkew": dice.weighted({1: 6, 2: 2, 3: 1}),
            "topologyKey": key,
            "whenUnsatisfiable": action,
        }
        own = [name for name in POD_LABELS if name in labels]
        if own and dice.chance(0.5):
            name = dice.pick(own)
            constraint["labelSelector"] = {"matchLabels": {name: labels[name]}}
        elif dice.chance(0.95):
            constraint["labelSelector"] = label_selector(dice, POD_LABELS)
        if action == "DoNotSchedule" and dice.chance(0.25):
            constraint["minDomains"] = dice.randint(1, 4)
        if dice.chance(0.25):
            constraint["nodeAffinityPolicy"] = dice.pick(("Honor", "Ignore"))
        if dice.chance(0.35):
            constraint["nodeTaintsPolicy"] = dice.pick(("Honor", "Ignore"))
        free = _keys_not_selected(constraint.get("labelSelector"))
        if free and dice.chance(0.25):
            constraint["matchLabelKeys"] = free[:1]
        constraints[key, action] = constraint
    return list(constraints.values())


def tolerations(dice: Dice) -> list[Obj]:
    found = []
    for _ in range(dice.randint(1, 3)):
        key, value = dice.pick((*TAINTS, ("node.kubernetes.io/unschedulable", "")))
        roll = dice.random()
        toleration: Obj
        if roll < 0.08:
            toleration = {"operator": "Exists"}
        elif roll < 0.45:
            toleration = {"key": key, "operator": "Exists"}
        else:
            toleration = {"key": key, "value": value if dice.chance(0.8) else "other"}
            if dice.chance(0.6):
                toleration["operator"] = "Equal"
        if dice.chance(0.5):
            toleration["effect"] = dice.pick(("NoSchedule", "PreferNoSchedule", "NoExecute"))
            if toleration["effect"] == "NoExecute" and dice.chance(0.5):
                toleration["tolerationSeconds"] = 30
        found.append(toleration)
    return found

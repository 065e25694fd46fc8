"""Plugin arguments, right and wrong, given to Podium's own plugins and to the real kube-scheduler: one answer.

What each plugin accepts is tested with the plugin. Here the whole way counts: decoded from a file, defaulted, checked
at the stage where kube-scheduler checks it, and refused in its words.
"""

from pathlib import Path

import pytest

from podium.config import ConfigError, load_config
from podium.plugins import load_registry
from tests.podium.config.stand_ins import config_text
from tests.podium.config.test_against_kube_scheduler import kube_scheduler
from tools.kit.real_rules import REAL_RULES

pytestmark = pytest.mark.usefixtures("testbed_programs")


def required(terms: str) -> str:
    return f"{{addedAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{terms}]}}}}}}"


def preferred(terms: str) -> str:
    return f"{{addedAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{terms}]}}}}"


def shaped(points: str) -> str:
    ratio = f"{{shape: [{points}]}}"
    return f"{{scoringStrategy: {{type: RequestedToCapacityRatio, requestedToCapacityRatio: {ratio}}}}}"


def constraints(entries: str) -> str:
    return f"{{defaultingType: List, defaultConstraints: [{entries}]}}"


SPREAD = "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}"
ARGUMENTS = {
    "DefaultPreemption": [
        "{minCandidateNodesPercentage: -1}",
        "{minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -5}",
        "{minCandidateNodesPercentage: 0}",
    ],
    "InterPodAffinity": [
        "{hardPodAffinityWeight: 101}",
        "{hardPodAffinityWeight: -1, ignorePreferredTermsOfExistingPods: true}",
    ],
    "NodeAffinity": [
        required("{matchExpressions: [{key: a, operator: In}]}"),
        required("{matchExpressions: [{key: '-a', operator: Foo, values: [x]}]}"),
        required("{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}"),
        required(
            "{matchExpressions: [{key: a, operator: Gt, values: [x]}]}, {matchFields: [{key: b, operator: Exists}]}"
        ),
        preferred("{weight: 5, preference: {matchExpressions: [{key: a, operator: NotIn}]}}"),
        preferred("{weight: 0, preference: {matchExpressions: [{key: a, operator: NotIn}]}}"),
        required(""),
        "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerm: []}}}",
    ],
    "NodeResourcesFit": [
        "{ignoredResources: ['', 'a/b/c', '-x']}",
        "{ignoredResourceGroups: ['a/b', '', 'x y']}",
        "{scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 101}, {name: memory, weight: -1}]}}",
        "{scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 0}]}}",
        "{scoringStrategy: {type: RequestedToCapacityRatio}}",
        "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {}}}",
        shaped("{utilization: 50, score: 11}, {utilization: 40, score: -1}, {utilization: 101}, {utilization: -1}"),
        "{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {shape: [{utilization: 50, score: 1}]}}}",
        "{scoringStrategy: {resources: [{name: cpu}]}}",
        "{scoringStrategy: {type: Foo}}",
        "{scoringStrategy: null}",
        "{scoringStrategy: {type: MostAllocated, resources: []}}",
    ],
    "NodeResourcesBalancedAllocation": [
        "{resources: [{name: cpu, weight: 2}, {name: cpu}, {name: cpu, weight: 0}]}",
        "{resources: []}",
    ],
    "PodTopologySpread": [
        "{defaultingType: Foo}",
        f"{{defaultingType: System, defaultConstraints: [{SPREAD}]}}",
        f"{{defaultConstraints: [{SPREAD}]}}",
        constraints(
            "{maxSkew: 0, topologyKey: '', whenUnsatisfiable: ''}, "
            "{maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: Foo, labelSelector: {}}"
        ),
        constraints(f"{SPREAD}, {SPREAD}"),
        "{defaultingType: List}",
    ],
    "VolumeBinding": [
        "{bindTimeoutSeconds: -1}",
        "{shape: [{utilization: 0, score: 0}]}",
        "{shape: []}",
        "{bindTimeoutSeconds: 0}",
    ],
    "DynamicResources": [
        "{filterTimeout: -1s, bindingTimeout: 0s}",
        "{filterTimeout: null, bindingTimeout: null}",
        "{filterTimeout: 0s, bindingTimeout: 1s}",
    ],
}


@pytest.mark.parametrize(("plugin", "args"), [(plugin, args) for plugin, each in ARGUMENTS.items() for args in each])
def test_arguments_mean_and_are_refused_the_same(plugin: str, args: str, tmp_path: Path) -> None:
    text = config_text(f"profiles:\n- pluginConfig:\n  - name: {plugin}\n    args: {args}\n")
    registry = load_registry()
    theirs = kube_scheduler(text, tmp_path)
    try:
        ours = load_config(text, "ours", registry, REAL_RULES).config
    except ConfigError as error:
        assert error.kube_text == theirs.error
    else:
        assert theirs.error == ""
        same = load_config(theirs.written, "theirs", registry, REAL_RULES).config
        assert same.profiles[0].args == ours.profiles[0].args

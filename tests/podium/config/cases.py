"""Files that cannot be used, with the line at fault and the message kube-scheduler ends with, and files that can.

The tables are checked twice: against Podium in test_validate.py and its neighbours, and against the real kube-scheduler
in test_against_kube_scheduler.py, which is why each message stands here in full.
"""

from random import Random
from typing import NamedTuple

from podium.config.points import Point
from tests.podium.config.stand_ins import IN_TREE


class Case(NamedTuple):
    name: str
    body: str  # without the two header lines, so the first line here is line 3 of the file
    line: int
    kube_text: str


def profile(body: str, name: str = "default-scheduler") -> str:
    """A profile with the given fields, indented for the `profiles:` list; its first line is the name."""
    return f"- schedulerName: {name}\n" + "".join(f"  {line}\n" for line in body.splitlines())


def profiles(*entries: str) -> str:
    return "profiles:\n" + "".join(entries)


CREATING = "initializing profiles: creating profile for scheduler name default-scheduler: "
IN_ARGS = (
    "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin "
)

STRICT = [
    Case("an unknown field", "paralelism: 3\n", 3, 'strict decoding error: unknown field "paralelism"'),
    Case("field names are case sensitive", "Parallelism: 3\n", 3, 'strict decoding error: unknown field "Parallelism"'),
    Case(
        "unknown fields deep down",
        profiles(profile("plugins:\n  score:\n    enabled:\n    - name: NodeName\n      wait: 3\n    disable: []\n")),
        10,
        'strict decoding error: unknown field "profiles[0].plugins.score.disable", '
        'unknown field "profiles[0].plugins.score.enabled[0].wait"',
    ),
    Case(
        "an unknown field in arguments",
        profiles(profile("pluginConfig:\n- name: DefaultPreemption\n  args:\n    minNodes: 1\n    maxNodes: 2\n")),
        9,
        f'{IN_ARGS}DefaultPreemption: strict decoding error: unknown field "maxNodes", unknown field "minNodes"',
    ),
    Case(
        "unknown fields in the file and in arguments",
        "nope: 1\n" + profiles(profile("pluginConfig:\n- name: DefaultPreemption\n  args:\n    minNodes: 1\n")),
        3,
        'strict decoding error: unknown field "nope", decoding .profiles[0].pluginConfig[0]: strict decoding error: '
        'decoding args for plugin DefaultPreemption: strict decoding error: unknown field "minNodes"',
    ),
    Case(
        "a field given twice",
        "parallelism: 3\nextenders: []\nparallelism: 4\n",
        5,
        'strict decoding error: yaml: unmarshal errors:\n  line 5: key "parallelism" already set in map',
    ),
    Case(
        "fields given twice, and an unknown one",
        "parallelism: 3\nleaderElection:\n  leaderElect: true\n  leaderElect: false\nparallelism: 4\nnope: 1\n",
        6,
        'strict decoding error: yaml: unmarshal errors:\n  line 6: key "leaderElect" already set in map\n'
        '  line 7: key "parallelism" already set in map, unknown field "nope"',
    ),
    Case(
        "a merged field given again",
        "profiles:\n- <<: {schedulerName: a}\n  schedulerName: b\n",
        5,
        'strict decoding error: yaml: unmarshal errors:\n  line 5: key "schedulerName" already set in map',
    ),
    Case(
        "the kind of other arguments",
        profiles(profile("pluginConfig:\n- name: DefaultPreemption\n  args:\n    kind: InterPodAffinityArgs\n")),
        8,
        "decoding .profiles[0].pluginConfig[0]: args for plugin DefaultPreemption were not of type "
        "DefaultPreemptionArgs.kubescheduler.config.k8s.io, got InterPodAffinityArgs.kubescheduler.config.k8s.io",
    ),
]

INVALID = [
    Case(
        "parallelism 0",
        "parallelism: 0\n",
        3,
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
    ),
    Case(
        "a percentage above 100",
        "percentageOfNodesToScore: 101\n",
        3,
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    ),
    Case(
        "a negative percentage",
        "percentageOfNodesToScore: -1\n",
        3,
        "percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
    ),
    Case(
        "a profile's percentage above 100",
        profiles(profile("percentageOfNodesToScore: 300")),
        5,
        "profiles[0].percentageOfNodesToScore: Invalid value: 300: not in valid range [0-100]",
    ),
    Case(
        "no initial back-off",
        "podInitialBackoffSeconds: 0\n",
        3,
        "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
    ),
    Case(
        "a longest back-off below the initial one",
        "podInitialBackoffSeconds: 20\n",
        1,  # the longest is the default, which is nowhere in the file
        "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
    ),
    Case(
        "a negative burst",
        "clientConnection: {burst: -1}\n",
        3,
        "clientConnection.burst: Invalid value: -1: must be non-negative",
    ),
    Case(
        "negative durations",
        "leaderElection:\n  leaseDuration: -1s\n  renewDeadline: -2s\n  retryPeriod: -300ms\n",
        4,
        '[leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero, '
        'leaderElection.renewDeadline: Invalid value: "-2s": must be greater than zero, '
        'leaderElection.retryPeriod: Invalid value: "-300ms": must be greater than zero]',
    ),
    Case(
        "a lease no longer than its renewal",
        "leaderElection:\n  renewDeadline: 15s\n",
        3,
        'leaderElection.leaseDuration: Invalid value: "15s": must be greater than `RenewDeadline`',
    ),
    Case(
        "a lock of another kind",
        "leaderElection:\n  resourceLock: configmaps\n",
        4,
        'leaderElection.resourceLock: Invalid value: "configmaps": resourceLock value must be "leases"',
    ),
    Case(
        "two profiles of one name",
        profiles(profile("", "a"), profile("", "a")),
        5,
        "profiles[1].schedulerName: Duplicate value: {}",
    ),
    Case(
        "profiles without a name",
        "profiles:\n- percentageOfNodesToScore: 1\n- schedulerName: ''\n",
        4,
        "[profiles[0].schedulerName: Required value, profiles[1].schedulerName: Required value, "
        "profiles[1].schedulerName: Duplicate value: {}]",
    ),
    Case(
        "a plugin that was removed",
        profiles(profile("plugins:\n  filter:\n    enabled:\n    - name: EBSLimits\n")),
        8,
        'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
        '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
    ),
    Case(
        "arguments of plugins that were removed",
        profiles(profile("pluginConfig:\n- name: AzureDiskLimits\n- name: CinderLimits\n- name: GCEPDLimits\n")),
        6,
        "["
        + ", ".join(
            f'profiles[0].pluginConfig[{i}]: Invalid value: "{name}": was invalid in version "v1" '
            '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
            for i, name in enumerate(("AzureDiskLimits", "CinderLimits", "GCEPDLimits"))
        )
        + "]",
    ),
    Case(
        "arguments given twice",
        profiles(profile("pluginConfig:\n- name: NodeName\n- name: NodeName\n")),
        7,
        'profiles[0].pluginConfig[1]: Duplicate value: "NodeName"',
    ),
    Case(
        "arguments out of range",
        profiles(
            profile("pluginConfig:\n- name: DefaultPreemption\n  args:\n    minCandidateNodesPercentage: 200\n", "a"),
            profile("pluginConfig:\n- name: DefaultPreemption\n  args:\n    minCandidateNodesAbsolute: -1\n", "b"),
        ),
        8,
        "[profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: Invalid value: 200: not in valid range "
        "[0, 100], profiles[1].pluginConfig[0].args.minCandidateNodesAbsolute: Invalid value: -1: not in valid range "
        "[0, inf)]",
    ),
    Case(
        "a duration in arguments that is too short",
        profiles(profile("pluginConfig:\n- name: DynamicResources\n  args:\n    bindingTimeout: 500ms\n")),
        8,
        'profiles[0].pluginConfig[0].args.bindingTimeout: Invalid value: "500ms": must be at least 1 second',
    ),
    Case(
        "two queue sorts",
        profiles(profile("plugins:\n  queueSort:\n    enabled:\n    - name: PrioritySort\n    - name: Other\n")),
        6,
        "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
    ),
    Case(
        "queue sorts that differ",
        profiles(
            profile("plugins:\n  queueSort:\n    enabled: [{name: PrioritySort}]\n    disabled: [{name: '*'}]\n", "a"),
            profile("plugins:\n  queueSort:\n    enabled: [{name: PrioritySort, weight: 2}]\n", "b"),
            profile("", "c"),
        ),
        11,
        '[profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"PrioritySort","Weight":2}],'
        '"Disabled":null}: must be the same for all profiles, profiles[2].plugins.queueSort: Invalid value: '
        '{"Enabled":null,"Disabled":null}: must be the same for all profiles]',
    ),
    Case(
        "queue sort arguments that differ",
        profiles(
            profile(
                "plugins:\n  queueSort:\n    enabled: [{name: PrioritySort}]\n"
                "pluginConfig: [{name: PrioritySort, args: {a: 1}}]\n",
                "a",
            ),
            profile(
                "plugins:\n  queueSort:\n    enabled: [{name: PrioritySort}]\n"
                "pluginConfig: [{name: PrioritySort, args: {a: 2}}]\n",
                "b",
            ),
        ),
        13,
        'profiles[1].pluginConfig.args: Invalid value: {"a":2}: queueSort must be the same for all profiles',
    ),
    Case(
        "a prioritizing extender without a weight",
        "extenders:\n- urlPrefix: http://a\n  prioritizeVerb: p\n"
        "- urlPrefix: http://b\n  prioritizeVerb: p\n  weight: -3\n",
        4,
        "[extenders[0].weight: Invalid value: 0: must have a positive weight applied to it, "
        "extenders[1].weight: Invalid value: -3: must have a positive weight applied to it]",
    ),
    Case(
        "two binding extenders",
        "extenders:\n- {urlPrefix: http://a, bindVerb: b}\n- {urlPrefix: http://b, bindVerb: b}\n",
        3,
        'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
    ),
    Case(
        "managed resources that are not extended ones, or managed twice",
        "extenders:\n- urlPrefix: http://a\n  managedResources:\n  - name: cpu\n  - name: example.com/gpu\n"
        "- urlPrefix: http://b\n  managedResources:\n  - name: example.com/gpu\n  - name: /x\n",
        6,
        '[extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name, '
        'extenders[1].managedResources[0].name: Invalid value: "example.com/gpu": duplicate extender managed resource '
        'name, extenders[1].managedResources[1].name: Invalid value: "/x": prefix part must be non-empty]',
    ),
    Case(
        "many things at once",
        "parallelism: 0\npodMaxBackoffSeconds: 0\nclientConnection: {burst: -1}\n",
        5,
        "[clientConnection.burst: Invalid value: -1: must be non-negative, parallelism: Invalid value: 0: should be an "
        "integer value greater than zero, podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to "
        "PodInitialBackoffSeconds]",
    ),
]

UNBUILDABLE = [
    Case(
        "a plugin nobody knows",
        profiles(profile("plugins:\n  score:\n    enabled:\n    - name: NodeAfinity\n")),
        8,
        f'{CREATING}ScorePlugin "NodeAfinity" does not exist',
    ),
    Case(
        "a plugin nobody knows, in multiPoint",
        profiles(profile("plugins:\n  multiPoint:\n    enabled:\n    - name: Mine\n")),
        8,
        f'{CREATING}PreFilterPlugin "Mine" does not exist',
    ),
    Case(
        "a removed plugin in multiPoint",
        profiles(profile("plugins:\n  multiPoint:\n    enabled:\n    - name: EBSLimits\n")),
        8,
        f'{CREATING}PreFilterPlugin "EBSLimits" does not exist',
    ),
    Case(
        "a plugin at a point it does not take part in",
        profiles(profile("plugins:\n  permit:\n    enabled:\n    - name: NodeName\n")),
        8,
        f'{CREATING}plugin "NodeName" does not extend PermitPlugin plugin',
    ),
    Case(
        "a plugin named twice at a point",
        profiles(profile("plugins:\n  filter:\n    enabled:\n    - name: NodeName\n    - name: NodeName\n")),
        9,
        f'{CREATING}plugin "NodeName" already registered as "FilterPlugin"',
    ),
    Case(
        "a plugin named twice in multiPoint",
        profiles(profile("plugins:\n  multiPoint:\n    enabled:\n    - name: NodeName\n    - name: NodeName\n")),
        9,
        f'{CREATING}plugin "NodeName" already registered as "PreFilterPlugin"',
    ),
    Case(
        "nobody to sort the queue",
        profiles(profile("plugins:\n  queueSort:\n    disabled:\n    - name: '*'\n")),
        6,
        f'{CREATING}only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
    ),
    Case(
        "nobody to bind",
        profiles(profile("plugins:\n  bind:\n    disabled:\n    - name: DefaultBinder\n")),
        6,
        f'{CREATING}at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
    ),
    Case(
        "arguments of NodeResourcesFit",
        profiles(
            profile(
                "pluginConfig:\n- name: NodeResourcesFit\n  args:\n    ignoredResourceGroups:\n    - a.b\n    - a/b\n"
            )
        ),
        10,
        f'{CREATING}initializing plugin "NodeResourcesFit": ignoredResourceGroups[1]: Invalid value: "a/b": resource '
        "group name can't contain '/'",
    ),
    Case(
        "a scoring strategy that does not exist",
        profiles(
            profile("pluginConfig:\n- name: NodeResourcesFit\n  args:\n    scoringStrategy:\n      type: Fullest\n")
        ),
        9,
        f'{CREATING}initializing plugin "NodeResourcesFit": scoringStrategy.type: Unsupported value: "Fullest": '
        'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"',
    ),
    Case(
        "several arguments of NodeResourcesFit",
        profiles(
            profile(
                "pluginConfig:\n- name: NodeResourcesFit\n  args:\n    ignoredResourceGroups: [a/b]\n"
                "    scoringStrategy: {type: ''}\n"
            )
        ),
        8,
        f'{CREATING}initializing plugin "NodeResourcesFit": [ignoredResourceGroups[0]: Invalid value: "a/b": resource '
        "group name can't contain '/', scoringStrategy.type: Unsupported value: \"\": supported values: "
        '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]',
    ),
    Case(
        "an extender that is both careless and careful",
        "extenders:\n- urlPrefix: https://a\n  tlsConfig:\n    insecure: true\n    caFile: /ca.pem\n",
        6,
        "couldn't build extenders: specifying a root certificates file with the insecure flag is not allowed",
    ),
    Case(
        "resources to ignore and nobody to ignore them",
        "extenders:\n- urlPrefix: http://a\n  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]\n"
        + profiles(profile("plugins:\n  multiPoint:\n    disabled:\n    - name: NodeResourcesFit\n")),
        7,
        "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config",
    ),
]

# kube-scheduler refuses these as well, in words about Go types; Podium has a sentence of its own.
OTHERWISE_REFUSED = [
    Case("a word for a number", "parallelism: many\n", 3, 'Invalid value: "many": expected an integer'),
    Case("a quoted number", 'parallelism: "8"\n', 3, 'Invalid value: "8": expected an integer'),
    Case("a fraction for an integer", "parallelism: 1.5\n", 3, "Invalid value: 1.5: expected an integer"),
    Case(
        "a weight beyond 32 bits",
        profiles(profile("plugins:\n  score:\n    enabled:\n    - name: ImageLocality\n      weight: 3000000000\n")),
        9,
        "Invalid value: 3000000000: expected an integer <= 2147483647",
    ),
    Case(
        "a duration without a unit",
        "leaderElection:\n  leaseDuration: 15\n",
        4,
        'Invalid value: 15: expected a duration with a unit such as "15s"',
    ),
    Case(
        "a null duration",
        "leaderElection:\n  leaseDuration:\n",
        4,
        'Invalid value: "": time: invalid duration ""',
    ),
    Case("a mapping for a list", "profiles: {}\n", 3, "Invalid value: {}: expected a list"),
    Case("a word for a boolean", "enableProfiling: sure\n", 3, 'Invalid value: "sure": expected true or false'),
    Case(
        "certificates that are not base64",
        "extenders:\n- urlPrefix: http://a\n  tlsConfig: {caData: '%%%'}\n",
        5,
        'Invalid value: "%%%": Invalid base64 encoded string',
    ),
    Case(
        "arguments that are not a mapping",
        profiles(profile("pluginConfig:\n- name: DefaultPreemption\n  args: [1]\n")),
        7,
        "decoding .profiles[0].pluginConfig[0]: decoding args for plugin DefaultPreemption: "
        "expected a mapping, got [1]",
    ),
    Case(
        "arguments of the wrong kind",
        profiles(profile("pluginConfig:\n- name: DefaultPreemption\n  args:\n    minCandidateNodesAbsolute: few\n")),
        8,
        "decoding .profiles[0].pluginConfig[0]: decoding args for plugin DefaultPreemption: "
        'Invalid value: "few": expected an integer',
    ),
    Case(
        "arguments of a kind nobody knows",
        profiles(profile("pluginConfig:\n- name: DefaultPreemption\n  args: {kind: Foo}\n")),
        7,
        "decoding .profiles[0].pluginConfig[0]: decoding args for plugin DefaultPreemption: "
        'no kind "Foo" is registered for version "kubescheduler.config.k8s.io/v1"',
    ),
]

JSON_WITH_MISTAKES = """\
{
"apiVersion": "kubescheduler.config.k8s.io/v1",
"kind": "KubeSchedulerConfiguration",
"parallelism": 3,
"zed": 1,
"abc": 2,
"parallelism": 4
}
"""
JSON_KUBE_TEXT = 'strict decoding error: unknown field "zed", unknown field "abc", duplicate field "parallelism"'

ACCEPTED = {
    "nothing set": "",
    "words that mean the same": "enableProfiling: n\nparallelism: 1e1\npodMaxBackoffSeconds: 0x10\n",
    "zeros that mean the default": (
        "clientConnection: {qps: 0, burst: 0, contentType: '', kubeconfig: KUBECONFIG}\n"
        "leaderElection: {leaseDuration: 0s, resourceName: '', resourceLock: ''}\n"
    ),
    "nulls": "parallelism: null\nprofiles: [null]\nextenders:\nleaderElection: {leaderElect: null}\n",
    "back-offs that do not grow": "podInitialBackoffSeconds: 10\n",
    "durations": "leaderElection: {leaseDuration: 1m30s, renewDeadline: 0.5m, retryPeriod: 1500ms}\n",
    "weights of 0 and 10^9": (
        "profiles:\n- plugins: {score: {enabled: [{name: ImageLocality, weight: 1000000000}, "
        "{name: NodeAffinity, weight: 0}]}}\n"
    ),
    "extenders": (
        "extenders:\n"
        "- urlPrefix: http://a\n  filterVerb: f\n  prioritizeVerb: p\n  weight: 2\n  nodeCacheCapable: true\n"
        "  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]\n"
        "- {urlPrefix: https://b, enableHTTPS: true, bindVerb: b, httpTimeout: 2s, ignorable: true}\n"
    ),
    "arguments": (
        "profiles:\n- pluginConfig:\n"
        "  - name: DefaultPreemption\n    args: {minCandidateNodesPercentage: 20}\n"
        "  - name: DynamicResources\n    args: {filterTimeout: 0s}\n"
        "  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}\n"
        "  - name: NodeName\n    args: {ignored: true}\n"
        "  - name: Nobody\n"
    ),
    "profiles": (
        "percentageOfNodesToScore: 30\nprofiles:\n"
        "- schedulerName: a\n  percentageOfNodesToScore: 0\n"
        "- schedulerName: b\n  plugins: {multiPoint: {disabled: [{name: Nobody}, {name: ImageLocality}]}}\n"
    ),
}


def random_profile(random: Random, number: int) -> dict[str, object]:
    """Some points with plugins enabled and disabled at random; queue sorting and binding must work, so not there."""
    # kube-scheduler gives no default arguments to a plugin that only podGroupPostFilter names, and then refuses it.
    left_out = {"queueSort", "bind", "podGroupPostFilter"}
    free = [point.value for point in Point if point not in left_out and "placement" not in point]
    able = {point: [each.name for each in IN_TREE if point in each.points] for point in free}
    able["multiPoint"] = [each.name for each in IN_TREE if each.name not in ("PrioritySort", "DefaultBinder")]
    sets: dict[str, object] = {}
    for key in random.sample(sorted(able), k=random.randint(1, 6)):
        names = able[key]
        enabled = random.sample(names, k=random.randint(0, min(4, len(names))))
        disabled = random.sample(names, k=random.randint(0, min(4, len(names))))
        if random.random() < 0.2 and key != "multiPoint":
            disabled.append("*")
        sets[key] = {
            "enabled": [{"name": name, "weight": random.randint(0, 9)} for name in enabled],
            "disabled": [{"name": name} for name in disabled],
        }
    return {"schedulerName": f"profile-{number}", "plugins": sets}

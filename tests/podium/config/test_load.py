import msgspec
import pytest

from podium.config import ConfigError, ConfigProblem, Duration, LeaderElection, Registry, default_config, load_config
from podium.config.types import ClientConnection, ExtenderConfig, ExtenderTLS, ManagedResource
from tests.podium.config.cases import JSON_KUBE_TEXT, JSON_WITH_MISTAKES
from tests.podium.config.stand_ins import (
    IN_TREE,
    REGISTRY,
    DefaultPreemptionArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    config_text,
    plugin,
    registry_of,
)


def refusal(text: str, registry: Registry = REGISTRY) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        load_config(text, "f.yaml", registry)
    return refused.value


def test_every_field_of_v1_is_read() -> None:
    config, warnings = load_config(
        config_text("""\
parallelism: 4
leaderElection:
  leaderElect: true
  leaseDuration: 1m30s
  renewDeadline: 1m
  retryPeriod: 5s
  resourceLock: leases
  resourceName: mine
  resourceNamespace: here
clientConnection:
  kubeconfig: /k
  acceptContentTypes: application/json
  contentType: application/json
  qps: 12.5
  burst: 25
enableProfiling: false
enableContentionProfiling: true
percentageOfNodesToScore: 40
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
delayCacheUntilActive: true
profiles:
- schedulerName: mine
  percentageOfNodesToScore: 60
  pluginConfig:
  - name: DefaultPreemption
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: DefaultPreemptionArgs
      minCandidateNodesAbsolute: 7
extenders:
- urlPrefix: https://extender/
  filterVerb: filter
  preemptVerb: preempt
  prioritizeVerb: prioritize
  weight: 3
  bindVerb: bind
  enableHTTPS: true
  tlsConfig:
    insecure: false
    serverName: extender
    certFile: /c
    keyFile: /k
    caFile: /a
    certData: Yw==
    keyData: aw==
    caData: YQ==
  httpTimeout: 250ms
  nodeCacheCapable: true
  managedResources:
  - name: example.com/gpu
    ignoredByScheduler: false
  ignorable: true
"""),
        "f.yaml",
        REGISTRY,
    )
    assert warnings == []
    assert config.parallelism == 4
    assert config.leader_election == LeaderElection(
        lease_duration=Duration.parse("90s"),
        renew_deadline=Duration.parse("60s"),
        retry_period=Duration.parse("5s"),
        resource_name="mine",
        resource_namespace="here",
    )
    assert config.client_connection == ClientConnection(
        kubeconfig="/k",
        accept_content_types="application/json",
        content_type="application/json",
        qps=12.5,
        burst=25,
    )
    assert (config.enable_profiling, config.enable_contention_profiling) == (False, True)
    assert config.percentage_of_nodes_to_score == 40
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (2, 20)
    assert config.delay_cache_until_active
    (profile,) = config.profiles
    assert (profile.scheduler_name, profile.percentage_of_nodes_to_score) == ("mine", 60)
    assert profile.args["DefaultPreemption"] == DefaultPreemptionArgs(min_candidate_nodes_absolute=7)
    assert config.extenders == (
        ExtenderConfig(
            url_prefix="https://extender/",
            filter_verb="filter",
            preempt_verb="preempt",
            prioritize_verb="prioritize",
            weight=3,
            bind_verb="bind",
            enable_https=True,
            tls_config=ExtenderTLS(
                server_name="extender",
                cert_file="/c",
                key_file="/k",
                ca_file="/a",
                cert_data=b"c",
                key_data=b"k",
                ca_data=b"a",
            ),
            http_timeout=Duration.parse("250ms"),
            node_cache_capable=True,
            managed_resources=(ManagedResource(name="example.com/gpu"),),
            ignorable=True,
        ),
    )


def test_an_empty_configuration_is_the_default_one() -> None:
    default = default_config(REGISTRY)
    assert load_config(config_text(""), "f.yaml", REGISTRY).config == default
    assert default.parallelism == 16
    assert default.percentage_of_nodes_to_score is None
    assert (default.pod_initial_backoff_seconds, default.pod_max_backoff_seconds) == (1, 10)
    assert default.leader_election == LeaderElection()
    assert default.client_connection.qps == 50.0
    assert default.enable_contention_profiling
    assert [profile.scheduler_name for profile in default.profiles] == ["default-scheduler"]
    assert set(default.profiles[0].args) == {each.name for each in IN_TREE if each.Args is not None}
    assert default.profiles[0].weights["TaintToleration"] == 3


def test_the_default_configuration_needs_every_default_plugin() -> None:
    registry = registry_of(*(each for each in IN_TREE if each.name != "NodePorts"))
    with pytest.raises(
        ConfigError, match=r'^the default configuration: profiles\[0\].plugins: .*"NodePorts" does not exist'
    ):
        default_config(registry)


def test_zero_is_a_percentage_and_unset_is_none() -> None:
    assert load_config(config_text("percentageOfNodesToScore: 0\n"), "f", REGISTRY).config == (
        msgspec.structs.replace(default_config(REGISTRY), percentage_of_nodes_to_score=0)
    )


def test_zeros_and_empty_strings_take_the_default_where_kube_scheduler_says_so() -> None:
    body = (
        "leaderElection: {leaseDuration: 0s, renewDeadline: '0', retryPeriod: 0ms, resourceName: '', resourceLock: ''"
        ", resourceNamespace: ''}\n"
        "clientConnection: {qps: 0, burst: 0, contentType: ''}\n"
        "profiles: []\n"
    )
    assert load_config(config_text(body), "f", REGISTRY).config == default_config(REGISTRY)


def test_without_profiling_there_is_no_contention_profiling_unless_asked_for() -> None:
    off = load_config(config_text("enableProfiling: false\n"), "f", REGISTRY).config
    assert not off.enable_contention_profiling


def test_extenders_wait_five_seconds_and_ignorable_ones_are_called_last() -> None:
    config = load_config(
        config_text("extenders:\n- {urlPrefix: a, ignorable: true, httpTimeout: 0s}\n- {urlPrefix: b}\n"), "f", REGISTRY
    ).config
    assert [extender.url_prefix for extender in config.extenders] == ["a", "b"]
    assert [extender.url_prefix for extender in config.extenders_in_call_order] == ["b", "a"]
    assert [extender.http_timeout.seconds for extender in config.extenders] == [5.0, 5.0]


def test_resources_an_extender_takes_care_of_replace_those_fit_was_told_to_ignore() -> None:
    config = load_config(
        config_text("""\
extenders:
- urlPrefix: a
  managedResources:
  - {name: example.com/a, ignoredByScheduler: true}
  - {name: example.com/b}
- urlPrefix: b
  managedResources:
  - {name: example.com/c, ignoredByScheduler: true}
profiles:
- schedulerName: configured
  pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResources: [example.com/z]
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}
- schedulerName: default
"""),
        "f",
        REGISTRY,
    ).config
    ignored = ("example.com/a", "example.com/c")
    strategy = ScoringStrategy(type="MostAllocated", resources=(ResourceSpec(name="cpu"),))
    assert [profile.args["NodeResourcesFit"] for profile in config.profiles] == [
        NodeResourcesFitArgs(ignored_resources=ignored, scoring_strategy=strategy),
        NodeResourcesFitArgs(ignored_resources=ignored),
    ]


def test_a_profile_has_arguments_only_for_the_plugins_it_enables() -> None:
    body = "profiles:\n- plugins: {multiPoint: {disabled: [{name: VolumeBinding}]}}\n"
    profile = load_config(config_text(body), "f", REGISTRY).config.profiles[0]
    assert "VolumeBinding" not in profile.args
    assert "NodeResourcesFit" in profile.args


def test_arguments_of_a_plugin_that_is_not_enabled_are_checked_all_the_same() -> None:
    body = (
        "profiles:\n- plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}\n"
        "  pluginConfig: [{name: DefaultPreemption, args: {minCandidateNodesPercentage: 200}}]\n"
    )
    assert "not in valid range" in refusal(config_text(body)).kube_text


def test_fit_is_not_built_and_so_not_checked_where_it_is_not_enabled() -> None:
    body = (
        "profiles:\n- plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}\n"
        "  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: Fullest}}}]\n"
    )
    load_config(config_text(body), "f", REGISTRY)


def test_a_plugin_of_ones_own_gets_its_arguments_like_an_in_tree_one() -> None:
    class MineArgs(msgspec.Struct):
        zone: str
        weight: float = 0.5

    registry = registry_of(*IN_TREE, plugin("Mine", "score", MineArgs))
    enabled = "profiles:\n- plugins: {multiPoint: {enabled: [{name: Mine}]}}\n"
    config = load_config(
        config_text(enabled + "  pluginConfig: [{name: Mine, args: {zone: a}}]\n"), "f", registry
    ).config
    assert config.profiles[0].args["Mine"] == MineArgs(zone="a")
    assert refusal(config_text(enabled), registry).problems == [
        ConfigProblem(
            "f.yaml", 4, "profiles[0]", 'initializing plugin "Mine": Object missing required field `zone`', "", 3
        )
    ]


@pytest.mark.parametrize(
    ("header", "problems"),
    [
        (
            "",
            [
                (1, "kind", "Object 'Kind' is missing"),
                (1, "apiVersion", "Object 'apiVersion' is missing"),
            ],
        ),
        ("apiVersion: kubescheduler.config.k8s.io/v1\n", [(1, "kind", "Object 'Kind' is missing")]),
        ("kind: KubeSchedulerConfiguration\n", [(1, "apiVersion", "Object 'apiVersion' is missing")]),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n",
            [
                (
                    1,
                    "apiVersion",
                    'no kind "KubeSchedulerConfiguration" is registered for version '
                    '"kubescheduler.config.k8s.io/v1beta2"',
                )
            ],
        ),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: Pod\n",
            [(2, "kind", 'no kind "Pod" is registered for version "kubescheduler.config.k8s.io/v1"')],
        ),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: DefaultPreemptionArgs\n",
            [
                (
                    2,
                    "kind",
                    "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, "
                    "Kind=DefaultPreemptionArgs",
                )
            ],
        ),
        ("- 1\n", [(1, "", "expected a mapping of fields at the top of the file")]),
        ("a: b: c\n", [(1, "", "not valid YAML: mapping values are not allowed in this context")]),
    ],
)
def test_what_is_not_a_v1_configuration_is_refused(header: str, problems: list[tuple[int, str, str]]) -> None:
    assert [(each.line, each.path, each.message) for each in refusal(header).problems] == problems


def test_v1beta3_is_read_as_v1_with_a_note() -> None:
    text = config_text("parallelism: 3\n").replace("/v1\n", "/v1beta3\n")
    text += (
        "profiles:\n- pluginConfig:\n  - name: DefaultPreemption\n    args:\n"
        "      apiVersion: kubescheduler.config.k8s.io/v1beta3\n      kind: DefaultPreemptionArgs\n"
    )
    loaded = load_config(text, "f.yaml", REGISTRY)
    assert loaded.config.parallelism == 3
    assert [str(warning) for warning in loaded.warnings] == [
        "f.yaml:1: apiVersion: v1beta3 was read as v1 (write apiVersion: kubescheduler.config.k8s.io/v1)"
    ]


def test_a_json_file_is_read_and_its_mistakes_come_in_the_order_of_the_file() -> None:
    error = refusal(JSON_WITH_MISTAKES)
    assert error.kube_text == JSON_KUBE_TEXT
    assert [problem.line for problem in error.problems] == [5, 6, 7]


def test_a_problem_reads_as_file_line_field_message_and_what_to_write() -> None:
    assert str(refusal(config_text("paralelism: 3\n"))) == (
        'f.yaml:3: paralelism: strict decoding error: unknown field "paralelism" (did you mean parallelism?)'
    )


def test_profiles_are_found_by_their_name() -> None:
    config = load_config(config_text("profiles: [{schedulerName: a}, {schedulerName: b}]\n"), "f", REGISTRY).config
    assert config.profile("b") is config.profiles[1]
    assert config.profile("c") is None

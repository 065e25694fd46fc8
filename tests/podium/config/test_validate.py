import pytest
from msgspec.structs import replace

from podium.config import ConfigError, ConfigProblem, load_config
from podium.config.defaults import with_defaults
from podium.config.types import KubeSchedulerConfiguration, LeaderElection
from podium.config.validate import validate
from podium.kube.versions import NEWEST
from tests.podium.config.cases import INVALID, OTHERWISE_REFUSED, STRICT, UNBUILDABLE, Case
from tests.podium.config.stand_ins import IN_TREE, REGISTRY, config_text, plugin, registry_of


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        load_config(text, "f.yaml", REGISTRY)
    return refused.value


@pytest.mark.parametrize("case", [*STRICT, *INVALID, *UNBUILDABLE], ids=lambda case: case.name)
def test_a_rule_that_is_broken_gives_kube_schedulers_message_and_the_line(case: Case) -> None:
    error = refusal(config_text(case.body))
    assert error.kube_text == case.kube_text
    assert error.problems[0].line == case.line


@pytest.mark.parametrize("case", OTHERWISE_REFUSED, ids=lambda case: case.name)
def test_a_value_of_the_wrong_kind_is_refused_with_the_line(case: Case) -> None:
    problem = refusal(config_text(case.body)).problems[0]
    assert (problem.line, problem.message) == (case.line, case.kube_text)


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.name)
def test_a_problem_has_path_and_message_apart(case: Case) -> None:
    first = refusal(config_text(case.body)).problems[0]
    text = case.kube_text.replace("{}", '"a"')  # where Podium names the profile that is there twice
    assert text.removeprefix("[").startswith(f"{first.path}: {first.message}")


def test_what_leader_election_flags_leave_empty_is_required() -> None:
    config = with_defaults(KubeSchedulerConfiguration())
    empty = LeaderElection(resource_lock="", resource_name="", resource_namespace="")
    assert [str(error) for error in validate(replace(config, leader_election=empty), {}, NEWEST)] == [
        "leaderElection.resourceLock: Required value",
        "leaderElection.resourceNamespace: Required value",
        "leaderElection.resourceName: Required value",
        'leaderElection.resourceLock: Invalid value: "": resourceLock value must be "leases"',
    ]


def test_without_leader_election_its_fields_are_not_looked_at() -> None:
    load_config(
        config_text("leaderElection: {leaderElect: false, leaseDuration: -1s, resourceLock: x}\n"), "f.yaml", REGISTRY
    )


def test_problems_of_all_stages_are_reported_together() -> None:
    error = refusal(
        config_text("nope: 1\nparallelism: 0\nprofiles:\n- plugins:\n    score:\n      enabled: [{name: Nobody}]\n")
    )
    assert [(problem.line, problem.path) for problem in error.problems] == [
        (3, "nope"),
        (4, "parallelism"),
        (8, "profiles[0].plugins.score.enabled[0]"),
    ]
    assert error.kube_text == 'strict decoding error: unknown field "nope"'


def test_a_plugin_set_that_did_not_decode_is_not_blamed_for_what_is_missing_from_it() -> None:
    error = refusal(
        config_text("profiles:\n- plugins:\n    bind:\n      disabled: [{name: '*'}]\n      enabeld: [{name: X}]\n")
    )
    assert [problem.path for problem in error.problems] == ["profiles[0].plugins.bind.enabeld"]


def test_a_mistake_noticed_twice_is_reported_once_and_hides_no_other() -> None:
    enabled = "enabled: [{name: EBSLimits}, {name: Nobody}]"
    error = refusal(config_text(f"profiles:\n- plugins:\n    filter:\n      {enabled}\n"))
    assert [problem.path for problem in error.problems] == [
        "profiles[0].plugins.filter.enabled[0]",
        "profiles[0].plugins.filter.enabled[1]",
    ]


def test_arguments_that_do_not_decode_are_reported_once() -> None:
    entry = "{name: NodeResourcesFit, args: {ignoredResources: 3, nope: 1, scoringStrategy: {}}}"
    error = refusal(config_text(f"profiles:\n- pluginConfig:\n  - {entry}\n"))
    assert [problem.path for problem in error.problems] == [
        "profiles[0].pluginConfig[0].args.ignoredResources",
        "profiles[0].pluginConfig[0].args.nope",
    ]


def test_two_queue_sorts_through_multi_point_are_refused_when_profiles_are_built() -> None:
    registry = registry_of(*IN_TREE, plugin("OtherSort", "queueSort"))
    text = config_text(
        "profiles:\n"
        "- schedulerName: a\n"
        "- schedulerName: b\n"
        "  plugins:\n"
        "    multiPoint:\n"
        "      enabled: [{name: OtherSort}]\n"
        "      disabled: [{name: PrioritySort}]\n"
    )
    with pytest.raises(ConfigError) as refused:
        load_config(text, "f.yaml", registry)
    assert refused.value.kube_text == (
        'initializing profiles: different queue sort plugins for profile "b": "OtherSort", first: "PrioritySort"'
    )
    assert refused.value.problems[0].line == 6


def test_queue_sort_arguments_must_agree_even_when_the_plugin_comes_through_multi_point() -> None:
    text = config_text(
        "profiles:\n"
        "- {schedulerName: a, pluginConfig: [{name: PrioritySort, args: {x: 1}}]}\n"
        "- {schedulerName: b, pluginConfig: [{name: PrioritySort, args: {x: 2}}]}\n"
    )
    assert refusal(text).kube_text == 'initializing profiles: different queue sort plugin args for profile "b"'


def test_two_placement_generators_are_one_too_many() -> None:
    registry = registry_of(*IN_TREE, plugin("P", "placementGenerate"), plugin("Q", "placementGenerate"))
    text = config_text("profiles:\n- plugins:\n    multiPoint: {enabled: [{name: P}, {name: Q}]}\n")
    with pytest.raises(ConfigError, match="at most one placement generate plugin is allowed for profile with sched"):
        load_config(text, "f.yaml", registry)


def test_a_default_plugin_that_nobody_loaded_is_named_without_blaming_an_entry_of_the_file() -> None:
    registry = registry_of(*(each for each in IN_TREE if each.name != "ImageLocality"))
    with pytest.raises(ConfigError) as refused:
        load_config(config_text(""), "f.yaml", registry)
    assert refused.value.problems == [
        ConfigProblem(
            "f.yaml",
            1,
            "profiles[0].plugins",
            'PreFilterPlugin "ImageLocality" does not exist',
            "it is one of the default plugins; disable it under plugins.multiPoint, or load it with --plugin",
        )
    ]


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("paralelism: 3\n", "did you mean parallelism?"),
        ("profiles:\n- plugins: {score: {enabled: [{name: NodeAfinity}]}}\n", "did you mean NodeAffinity?"),
        ("profiles:\n- plugins: {score: {enabled: [{weight: 3}]}}\n", "give the entry a name"),
        ("profiles:\n- plugins: {score: {enabled: [{name: Zzz}]}}\n", "load it with --plugin module:Class"),
        ("profiles:\n- plugins: {filter: {enabled: [{name: ImageLocality}]}}\n", "it runs at score"),
        (
            "profiles:\n- plugins: {filter: {enabled: [{name: EBSLimits}]}}\n",
            "NodeVolumeLimits does its work; remove this entry",
        ),
        ("leaderElection: {leaseDuration: 15}\n", 'write "15s" for 15 seconds'),
        ("parallelism: 1\nparallelism: 2\n", "it is already on line 3; keep one"),
        ("profiles: [{schedulerName: a}, {schedulerName: a}]\n", "profiles[0] is called a, too"),
    ],
)
def test_a_hint_says_what_to_write_instead(body: str, hint: str) -> None:
    assert refusal(config_text(body)).problems[0].hint == hint

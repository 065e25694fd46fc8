"""Whatever is wrong with the input ends in one sentence that says where, and exit code 2; never in a traceback."""

from pathlib import Path

import pytest

from tests.podium.cli.command import podium
from tests.podium.cli.texts import HEADER, SAMPLE, documents, node, pod, requesting, write

AFFINITY = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - EXPRESSION
"""

BROKEN_CLUSTERS = {
    "malformed YAML": ("a: [1\nb: 2\n", "FILE:2: the YAML is broken: did not find expected ',' or ']'"),
    "malformed JSON": ('{"kind": "Pod",\n', "FILE:2: the JSON is broken: "),
    "not text": (b"kind: \xff\n", "FILE:1: not UTF-8 text; save the file as UTF-8"),
    "nothing": ("", "FILE: no objects that scheduling knows; try kubectl get nodes,pods -A -o json > cluster.json"),
    "an empty list": ('{"apiVersion": "v1", "kind": "List", "items": []}', "FILE: no objects that scheduling knows; "),
    "other kinds only": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
        "FILE: no objects that scheduling knows; ",
    ),
    "a scalar": ("hello\n", "FILE:1: $: expected a map, got text"),
    "no kind": ("apiVersion: v1\n", "FILE:1: the document has no kind; is it a Kubernetes object?"),
    "nested without end": ("a: &a [*a]\n", "FILE:1: an anchor contains itself"),
    "a bad quantity": (
        pod("web", spec=requesting("1x")),
        'FILE:5: Pod "default/web": $.spec.containers[0].resources.requests.cpu: quantity "1x" cannot be read ',
    ),
    "a bad quantity of a node": (
        node("one").replace("8Gi", "8Gib"),
        'FILE:5: Node "one": $.status.allocatable.memory: quantity "8Gib" cannot be read ',
    ),
    "a wrong type": (
        pod("web", spec="containers: 3"),
        'FILE:5: Pod "default/web": $.spec.containers: expected a list, got a whole number',
    ),
    "an impossible operator": (
        AFFINITY.replace("EXPRESSION", "{key: disk, operator: Inn, values: [ssd]}"),
        'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Inn": supported values: ',
    ),
    "an impossible selector": (
        AFFINITY.replace("EXPRESSION", "{key: disk, operator: In, values: []}"),
        "for 'in', 'notin' operators, values set can't be empty",
    ),
}

BROKEN_CONFIGS = {
    "malformed YAML": ("profiles: [\n", "FILE:4: not valid YAML: "),
    "an unknown field": (
        "paralelism: 3\n",
        'FILE:3: paralelism: strict decoding error: unknown field "paralelism" (did you mean parallelism?)',
    ),
    "an unknown plugin": (
        "profiles: [{plugins: {score: {enabled: [{name: ImageLocalty}]}}}]\n",
        'FILE:3: profiles[0].plugins.score.enabled[0]: ScorePlugin "ImageLocalty" does not exist '
        "(did you mean ImageLocality?)",
    ),
    "a weight beyond all bounds": (
        f"profiles: [{{plugins: {{score: {{enabled: [{{name: ImageLocality, weight: {10**12}}}]}}}}}}]\n",
        "FILE:3: profiles[0].plugins.score.enabled[0].weight: Invalid value: 1000000000000: ",
    ),
    "a negative weight": (
        "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}}]\n",
        "FILE:3: profiles[0].plugins.score.enabled[0].weight: Invalid value: -1: must not be negative ",
    ),
    "unknown arguments": (
        "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardWeight: 3}}]}]\n",
        "FILE:3: profiles[0].pluginConfig[0].args.hardWeight: ",
    ),
    "two profiles of one name": (
        "profiles: [{schedulerName: a}, {schedulerName: a}]\n",
        'FILE:3: profiles[1].schedulerName: Duplicate value: "a" (profiles[0] is called a, too)',
    ),
    "two queue sorters": (
        "profiles: [{plugins: {queueSort: {enabled: [{name: PrioritySort}, {name: PrioritySort}]}}}]\n",
        "FILE:3: profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
    ),
}


def the_sentence(err: str, file: str = "") -> str:
    lines = err.splitlines()
    assert lines, "nothing was said"
    assert "Traceback" not in err
    return lines[0].replace(file, "FILE") if file else lines[0]


@pytest.mark.parametrize(("text", "sentence"), BROKEN_CLUSTERS.values(), ids=BROKEN_CLUSTERS.keys())
def test_a_file_that_is_not_a_cluster(text: str | bytes, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    ran = podium("explain", "default/web", "--from", str(file))
    assert (ran.code, ran.out) == (2, "")
    assert sentence in the_sentence(ran.err, str(file))
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(("body", "sentence"), BROKEN_CONFIGS.values(), ids=BROKEN_CONFIGS.keys())
def test_a_configuration_that_cannot_be_used(body: str, sentence: str, tmp_path: Path) -> None:
    file = write(tmp_path, "scheduler.yaml", HEADER + body)
    explained = podium("explain", "shop/web-4", "--from", SAMPLE, "--config", file)
    assert (explained.code, explained.out) == (2, "")
    assert sentence in the_sentence(explained.err, file)
    checked = podium("check", file)
    assert (checked.code, checked.err) == (2, "")
    assert sentence in the_sentence(checked.out, file)


@pytest.mark.parametrize("weight", [0, 10**9])
def test_a_weight_that_is_legal_but_hardly_meant_is_warned_of(weight: int, tmp_path: Path) -> None:
    body = f"profiles: [{{plugins: {{score: {{enabled: [{{name: ImageLocality, weight: {weight}}}]}}}}}}]\n"
    file = write(tmp_path, "scheduler.yaml", HEADER + body)
    for ran in (podium("check", file), podium("explain", "shop/web-4", "--from", SAMPLE, "--config", file)):
        assert ran.code == 0
        assert ran.err.startswith(
            f"warning: {file}:3: profiles[0].plugins.score.enabled[0].weight: a weight of {weight} "
        )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["explain", "web", "--from", "gone.yaml"], "gone.yaml: cannot be read: No such file or directory"),
        (["explain", "web", "--from", "."], ".: cannot be read: Is a directory"),
        (
            ["explain", "web", "--from", "sample:nope"],
            "sample:nope: there is no such sample; write sample:cluster or sample:device-workload or sample:workload",
        ),
        (
            ["simulate", "examples/simulate/broker-sample.yaml", "--data", "examples/traces", "--out", "/proc/x"],
            "/proc/x: cannot be written: No such file or directory",
        ),
        (["plugins", "new", "Mine", "--dir", "/proc/x"], "cannot be written: No such file or directory"),
        (["explain", "web", "--from", "-", "--from", "-"], 'standard input can be read only once: give "-" once'),
        (["explain", "shop/web-4", "--from", SAMPLE, "--config", "gone.yaml"], "gone.yaml: cannot be read: No such"),
        (["explain", "--from", SAMPLE], "say which pod: shop/web-4, shop/checkout, analytics/training wait for a node"),
        (["explain", "web-4", "--from", SAMPLE], "pod default/web-4 is not in the files; did you mean shop/web-4?"),
        (
            ["explain", "shop/chekout", "--from", SAMPLE],
            "pod shop/chekout is not in the files; did you mean shop/checkout?",
        ),
        (
            ["explain", "a/b/zzz", "--from", SAMPLE],
            "pod a/b/zzz is not in the files; they hold no pods in the namespace a",
        ),
        (["explain", "--nope"], "No such option: --nope (see podium explain --help)"),
        (["explain", "shop/web-4", "--from", SAMPLE, "-o", "xml"], "'xml' is not one of 'table', 'json', 'yaml'"),
        (["explian"], "No such command 'explian'. Did you mean 'explain'? (see podium --help)"),
        (["explain", "a", "b", "--from", SAMPLE], "Got unexpected extra argument"),
        (["check"], "Missing argument 'FILE'"),
        (["check", "gone.yaml"], "gone.yaml: cannot be read: No such file or directory"),
        (["plugins", "--plugin", "gone:Gone"], "--plugin gone:Gone: cannot be loaded: No module named 'gone'"),
        (["plugins", "--plugin", "gone"], '--plugin gone: write it as "module:Class"'),
        (["plugins", "--plugin", "json:nope"], '--plugin json:nope: module "json" has no "nope"'),
        (["plugins", "--plugin", "json:JSONDecoder"], "--plugin json:JSONDecoder is not a Plugin class"),
        (["plugins", "new"], "Missing argument 'NAME'"),
        (
            ["manifest", "annotate", "usage", "--prometheus", "http://x\nkind: Secret"],
            "--prometheus http://x\\nkind: Secret: Invalid value: ",
        ),
        (["run", "--leader-elect-resource-namespace", "../x"], 'resourceNamespace: Invalid value: "../x": '),
        (["up", "--feature-gates", "GenericWorklod=true"], "unrecognized feature gate: GenericWorklod (did you mean "),
        (["controller", "--leader-elect-resource-name", "a/b"], 'resourceName: Invalid value: "a/b": '),
    ],
    ids=lambda each: " ".join(each).replace(SAMPLE, "SAMPLE") if isinstance(each, list) else "",
)
def test_a_command_line_that_cannot_be_done(arguments: list[str], sentence: str) -> None:
    ran = podium(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in the_sentence(ran.err)
    assert len(ran.err.splitlines()) == 1


def test_a_file_given_with_dash_f_must_hold_one_pod(tmp_path: Path) -> None:
    two = write(tmp_path, "two.yaml", documents(pod("a"), pod("b")))
    assert podium("explain", "-f", two, "--from", SAMPLE).err == (
        "say which pod: the file given with -f holds default/a, default/b\n"
    )
    none = write(tmp_path, "none.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n")
    ran = podium("explain", "-f", none, "--from", SAMPLE)
    assert ran.code == 2
    assert ran.err == f"{none}: no pod in it, only apps/v1 Deployment; give the Pod itself\n"


def test_a_scheduler_nobody_has_configured(tmp_path: Path) -> None:
    ran = podium("explain", "web", "--from", "-", stdin=pod("web", spec="schedulerName: other"))
    assert ran.code == 2
    assert ran.err == 'pod default/web asks for scheduler "other", but the configuration only has "default-scheduler"\n'


def test_a_plugin_module_that_breaks_while_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "broken_while_loading.py", "1 / 0\n")
    monkeypatch.chdir(tmp_path)
    ran = podium("plugins", "--plugin", "broken_while_loading:Mine")
    assert ran.code == 2
    assert ran.err == ("--plugin broken_while_loading:Mine: cannot be loaded: ZeroDivisionError: division by zero\n")

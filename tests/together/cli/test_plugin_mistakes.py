"""A plugin that cannot work ends `podium up` and `podium run` with one sentence and exit code 2, never a traceback."""

from pathlib import Path

import pytest

from tests.podium.cli.command import podium

SCORES = "def score_node(self, cycle, node): return 0"


@pytest.mark.parametrize("command", ["up", "run"])
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "def scor_node(self, cycle, node): return 0",
            '"scor_node" is no method of a plugin: did you mean score_node?',
        ),
        ("def scoreNode(self, cycle, node): return 0", '"scoreNode" is no method of a plugin: did you mean score_node'),
        (f"reson = 'full'\n    {SCORES}", '"reson" is no attribute of a plugin: did you mean reason?'),
        (f"Args = {{'a': 1}}\n    {SCORES}", "Args is {'a': 1} (dict): write a class of fields with defaults"),
        (f"normalizer = 'reversed'\n    {SCORES}", "normalizer is 'reversed' (str): write Normalizer.DEFAULT or"),
        (f"depends_on = 'node'\n    {SCORES}", "depends_on is 'node' (str): write DependsOn(node="),
        ("async def score_node(self, cycle, node): return 0", "score_node is async def: write def; only bind and"),
        ("pass", "it has no method of an extension point and does nothing: write one"),
        (f"name = 'NodeAffinity'\n    {SCORES}", 'a plugin named "NodeAffinity" exists already; set another name'),
        (f"import nothere\n    {SCORES}", "line 3: No module named 'nothere'"),
        ("def score_node(self cycle): return 0", "line 3: SyntaxError"),
        ("def score_node(self, node): return 0", "score_node(self, node) cannot be called: write score_node(self, cyc"),
        ("import sys; sys.exit()", "mine.py:3: sys.exit ends the whole process: raise an exception"),
        (
            f"def __init__(self, args, handle): open('/nope')\n    {SCORES}",
            "initializing plugin \"Mine\": FileNotFoundError: [Errno 2] No such file or directory: '/nope' (mine.py:3)",
        ),
    ],
)
def test_a_plugin_that_cannot_work_is_refused_in_one_sentence(
    command: str, body: str, sentence: str, tmp_path: Path
) -> None:
    file, kubeconfig = tmp_path / "mine.py", tmp_path / "kubeconfig"
    file.write_text(f"from podium import Plugin\nclass Mine(Plugin):\n    {body}\n")
    kubeconfig.write_text(
        "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], current-context: c,"
        " contexts: [{name: c, context: {cluster: c}}]}"
    )
    more = ["--no-view", "--port", "0"] if command == "up" else ["--kubeconfig", str(kubeconfig), "--secure-port", "0"]
    ran = podium(command, "--plugin", str(file), *more)
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    assert ran.err.startswith((f"--plugin {file}: {sentence}", sentence)), ran.err

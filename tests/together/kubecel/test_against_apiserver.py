"""A short comparison with the real API server; `make cel` runs a long one."""

from tests.kubecel.generated import expressions
from tests.together.kubecel.apiserver import answer_of_podium, answers_of_the_api_server
from tools.testbed.cluster import ControlPlane

COUNT = 300
SEED = 36


def test_podium_says_of_expressions_what_the_api_server_says(control_plane: ControlPlane) -> None:
    texts = expressions(SEED, COUNT)
    answers = answers_of_the_api_server(control_plane.client, texts)
    assert {bool(answer) for answer in answers} == {True, False}
    assert [answer_of_podium(text) for text in texts] == answers

"""A short comparison with the real API server: what is taken and what is refused.

`python -m tests.podium_cluster.apiserver.schema.rules` runs a long one.
"""

from contextlib import closing

from tests.podium_cluster.apiserver.contract.session import Server, Session
from tests.podium_cluster.apiserver.schema.rules.comparison import compare
from tests.podium_cluster.apiserver.schema.rules.generated import rule_cases
from tests.podium_cluster.apiserver.server import EmbeddedServer
from tools.testbed.cluster import ControlPlane

COUNT = 40
SEED = 36


def test_rules_are_taken_and_evaluated_as_by_the_api_server(control_plane: ControlPlane) -> None:
    real = Server(control_plane.server, token=control_plane.token, ca_path=control_plane.ca_path)
    with EmbeddedServer() as embedded:
        own = Server(embedded.server)
        with closing(Session(real, "")) as first, closing(Session(own, "")) as second:
            compared = compare(first, second, rule_cases(SEED, COUNT))
    assert compared.differences == []
    for answer in ("definitions taken", "definitions refused", "objects taken", "objects refused"):
        assert compared.answers[answer] > 5, compared

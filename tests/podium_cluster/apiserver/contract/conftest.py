"""The servers of the suite, once for all of it: the embedded API, alone and beside the real kube-apiserver."""

from collections.abc import Iterator

import pytest

from tests.podium_cluster.apiserver.contract.both import Servers
from tests.podium_cluster.apiserver.contract.session import Server
from tests.podium_cluster.apiserver.server import EmbeddedServer
from tools.testbed import ControlPlane


@pytest.fixture(scope="session", params=["recorded", pytest.param("real", marks=pytest.mark.testbed)])
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    with EmbeddedServer() as embedded:
        if request.param == "recorded":
            yield Servers(None, Server(embedded.server))
            return
        request.getfixturevalue("testbed_programs")
        with ControlPlane(priority_admission=True) as plane:
            yield Servers(Server(plane.server, token=plane.token, ca_path=plane.ca_path), Server(embedded.server))

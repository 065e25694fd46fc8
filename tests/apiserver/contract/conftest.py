"""Both servers, once for the whole suite: the real kube-apiserver and the embedded one."""

from collections.abc import Iterator

import pytest

from tests.apiserver.contract.both import Servers
from tests.apiserver.contract.session import Server
from tests.apiserver.server import EmbeddedServer
from tests.testbed import ControlPlane


@pytest.fixture(scope="session")
def servers(testbed_programs: None) -> Iterator[Servers]:
    with ControlPlane(priority_admission=True) as plane, EmbeddedServer() as embedded:
        real = Server(plane.server, token=plane.token, ca_path=plane.ca_path)
        yield Servers(real, Server(embedded.server))

"""Fixtures of tests/podium/client for tests of the client together with plugins."""

from tests.podium.client.conftest import run

__all__ = ["run"]

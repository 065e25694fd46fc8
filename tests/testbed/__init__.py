"""The real Kubernetes components that tests run against, built from pinned sources; README.md lists what is offered."""

from tests.testbed.apiclient import ApiClient, ApiError
from tests.testbed.availability import TestbedUnavailable
from tests.testbed.cluster import ControlPlane
from tests.testbed.processes import Component, ComponentFailed

__all__ = ["ApiClient", "ApiError", "Component", "ComponentFailed", "ControlPlane", "TestbedUnavailable"]

"""The real Kubernetes components that tests run against, built from pinned sources; README.md lists what is offered."""

from tools.testbed.apiclient import ApiClient, ApiError
from tools.testbed.availability import TestbedUnavailable
from tools.testbed.cluster import ControlPlane
from tools.testbed.processes import Component, ComponentFailed

__all__ = ["ApiClient", "ApiError", "Component", "ComponentFailed", "ControlPlane", "TestbedUnavailable"]

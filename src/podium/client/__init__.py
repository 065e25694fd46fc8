"""The Kubernetes client: access (`load_access`), requests (`Client`), collections that stay up to date (`Reflector`),
and lessons stored in ConfigMaps (`WatchedExperience`)."""

from podium.client.access import Access
from podium.client.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client
from podium.client.errors import AccessError, ApiError, ClientError, TimedOut, Unreachable, missing_rule
from podium.client.experience import WatchedExperience
from podium.client.loading import load_access
from podium.client.reflector import Reflector
from podium.client.resource import RESOURCES, WATCHED, ApiResource

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "RESOURCES",
    "STRATEGIC_MERGE_PATCH",
    "WATCHED",
    "Access",
    "AccessError",
    "ApiError",
    "ApiResource",
    "Client",
    "ClientError",
    "Reflector",
    "TimedOut",
    "Unreachable",
    "WatchedExperience",
    "load_access",
    "missing_rule",
]

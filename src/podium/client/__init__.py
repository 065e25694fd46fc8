"""The Kubernetes client: access (`load_access`), requests (`Client`), collections that stay up to date (`Reflector`),
and lessons stored in ConfigMaps (`WatchedOutcomes`)."""

from podium.client.access import Access
from podium.client.api_errors import AccessError, ApiError, ClientError, TimedOut, Unreachable, missing_rule
from podium.client.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client
from podium.client.loading import load_access
from podium.client.reflector import Reflector
from podium.client.resource import RESOURCES, WATCHED, ApiResource
from podium.client.watched_outcomes import WatchedOutcomes

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
    "WatchedOutcomes",
    "load_access",
    "missing_rule",
]

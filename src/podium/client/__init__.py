"""The Kubernetes client: where the API server is and who is asking (`load_access`), and requests to it (`Client`)."""

from podium.client.access import Access, load_access
from podium.client.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client
from podium.client.errors import AccessError, ApiError, ClientError, TimedOut, Unreachable

__all__ = [
    "APPLY_PATCH",
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "Access",
    "AccessError",
    "ApiError",
    "Client",
    "ClientError",
    "TimedOut",
    "Unreachable",
    "load_access",
]

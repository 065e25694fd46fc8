"""Writes times as the API does: UTC, to the second in metadata and conditions, finer in events and leases."""

from datetime import UTC, datetime
from functools import lru_cache


def timestamp(seconds: float) -> str:
    return _to_the_second(int(seconds))


@lru_cache(maxsize=64)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()

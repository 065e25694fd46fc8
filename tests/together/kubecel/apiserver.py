"""Asks the real API server what it says of CEL expressions: each goes into a ResourceClaim that is not kept."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kubecel import DeviceSelectorError, compile_selector
from kubecel.device_selector import MAX_LENGTH
from kubecel.strconv import quoted
from tools.testbed.apiclient import ApiClient, ApiError

PATH = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
FIELD = "spec.devices.requests[0].exactly.selectors[0].cel.expression"
TOO_COMPLEX = "too complex, exceeds cost limit"


def claim(expression: str) -> dict[str, Any]:
    request = {"deviceClassName": "c", "selectors": [{"cel": {"expression": expression}}]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "asked"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": request}]}},
    }


def answer_of_the_api_server(client: ApiClient, expression: str) -> str:
    """What the API server says against the expression; empty where it takes it."""
    try:
        client.request("POST", PATH, claim(expression), query={"dryRun": "All"})
    except ApiError as error:
        return error.message
    return ""


def answer_of_podium(expression: str) -> str:
    """The same words from our own compiler."""
    if len(expression.encode()) > MAX_LENGTH:
        return refusal(f"{FIELD}: Too long: may not be more than {MAX_LENGTH} bytes")
    try:
        selector = compile_selector(expression)
    except DeviceSelectorError as error:
        if error.internal:
            return refusal(f"{FIELD}: Internal error: {error}")
        return refusal(f"{FIELD}: Invalid value: {quoted(expression)}: {error}")
    return refusal(f"{FIELD}: Forbidden: {TOO_COMPLEX}") if selector.is_too_complex else ""


def refusal(problem: str) -> str:
    return f'ResourceClaim.resource.k8s.io "asked" is invalid: {problem}'


def answers_of_the_api_server(client: ApiClient, expressions: Iterable[str]) -> list[str]:
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(lambda expression: answer_of_the_api_server(client, expression), expressions))

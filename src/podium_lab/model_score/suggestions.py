"""Asks an agent through a suggestions server: TCP, one command a connection, as the thesis' agent speaks it.

    setResourceValues {…}   what this pod asks for; raises the step flag
    getStep                 again and again until the agent has lowered the flag
    getSuggestion           {"address of a node": number, …}; larger is better

An agent that polls twice a second needs a deadline of a second. The protocol doesn't say which pod is meant, so one
question is under way at a time, and a flag that is still up from a question that was given up is waited out. Nodes that
the suggestion doesn't name get its lowest number. Where it names none of the nodes, the heuristic decides.
"""

from __future__ import annotations

import socket
import time
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
import numpy as np

from podium.kube import Node
from podium.kube.bounds import UNDECODABLE
from podium_lab.model_score.question import ModelError, ModelNumbers, ModelQuestion, checked_numbers

LARGEST_REPLY: Final = 1 << 20
POLL_SECONDS: Final = 0.02
DEFAULT_PORT: Final = 8765
NOT_REQUESTED: Final = "Not requested"
UNSET: Final = -1
_MEBI: Final = 1 << 20


class SuggestionsModel:
    """An agent behind a suggestions server."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.name = f"the suggestions server {parts.netloc}"
        self._address = parts.hostname or "", parts.port or DEFAULT_PORT

    def prepare(self) -> None:
        """Each command has a connection of its own."""

    def close(self) -> None:
        """Nothing is kept."""

    def ask(self, question: ModelQuestion, deadline: float) -> ModelNumbers:
        try:
            self._command(f"setResourceValues {resource_values(question)}", deadline)
            while self._command("getStep", deadline) is not False:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                time.sleep(min(POLL_SECONDS, left))
            suggestion = self._command("getSuggestion", deadline)
        except TimeoutError:
            raise ModelError("timeout", f"the agent behind {self.name} suggested nothing in time") from None
        except ConnectionRefusedError:
            raise ModelError("no_model", f"{self.name} refuses connections: is it running there?") from None
        except OSError as error:
            raise ModelError("exception", f"{self.name} cannot be asked: {error}") from None
        return ModelNumbers(checked_numbers(self._numbers(suggestion, question), len(question.names), self.name))

    def _numbers(self, suggestion: Any, question: ModelQuestion) -> Any:
        if not isinstance(suggestion, dict) or not all(type(each) in (int, float) for each in suggestion.values()):
            raise ModelError("schema", f"{self.name} must suggest a number for each address")
        found = [_of_node(suggestion, node) for node in question.nodes()]
        known = [each for each in found if each is not None]
        if not known:
            raise ModelError("schema", f"{self.name} suggests none of the {len(found)} nodes that the pod fits")
        lowest = min(known)
        return np.array([lowest if each is None else each for each in found], dtype=np.float64)

    def _command(self, text: str, deadline: float) -> Any:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        with socket.create_connection(self._address, timeout=left) as connection:
            connection.sendall(text.encode())
            reply = bytearray()
            while part := _received(connection, deadline):
                reply += part
                if len(reply) > LARGEST_REPLY:
                    raise ModelError("exception", f"{self.name} answered with more than {LARGEST_REPLY:,} bytes")
        if not reply and text.startswith("setResourceValues"):
            return None
        try:
            return msgspec.json.decode(reply)
        except UNDECODABLE:
            reason = "nan" if b"NaN" in reply or b"Infinity" in reply else "exception"
            raise ModelError(reason, f"{self.name} answered with something that is no JSON") from None


def _received(connection: socket.socket, deadline: float) -> bytes:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    connection.settimeout(left)
    return connection.recv(1 << 16)


def _of_node(suggestion: dict[str, Any], node: Node) -> float | None:
    """What is suggested for a node, by one of its addresses or its name."""
    for key in (*(address.address for address in node.status.addresses), node.name):
        if key in suggestion:
            return float(suggestion[key])
    return None


def resource_values(question: ModelQuestion) -> str:
    """The values of a pod as the agent reads them: quantities as text, milliseconds, −1 where there is no limit."""
    pod = question.situation.pod
    cpu, memory = int(pod.request[0]), int(pod.request[1])
    amount = f"{memory // _MEBI}Mi" if memory % _MEBI == 0 else str(memory)
    values = {
        "cpuRequest": f"{cpu}m" if cpu else NOT_REQUESTED,
        "memoryRequest": amount if memory else NOT_REQUESTED,
        "latencySoftConstraint": UNSET if np.isnan(pod.latency_soft) else float(pod.latency_soft),
        "latencyHardConstraint": UNSET if np.isnan(pod.latency_hard) else float(pod.latency_hard),
    }
    return msgspec.json.encode(values).decode()

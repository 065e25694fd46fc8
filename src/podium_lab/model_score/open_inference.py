"""Asks servers of the Open Inference Protocol v2: KServe, Triton, MLServer, OpenVINO, TorchServe.

    GET  /v2/health/ready, /v2, /v2/models/M       before the first question: whether it is the model we mean
    POST /v2/models/M/infer                        one request for each decision

Inputs are `nodes` FP32 [1, W, F], `pod` FP32 [1, P], `global` FP32 [1, G] and `mask` BOOL [1, W], as far as the model's
metadata has them; the output is `scores` [1, W], larger is better. The feature schema's hash stands in the metadata
under `parameters` or `properties`, of the model or of an input, as `schema`.

Numbers go as JSON, rounded to six decimals, or as bytes (the binary tensor extension): JSON first, then one tensor
after the other, little-endian.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.kube.bounds import UNDECODABLE
from podium.kube.printable import printable
from podium_lab.model_score.channel import Channel, Exchange, HttpReply, ServerAccess
from podium_lab.model_score.question import ModelError, ModelNumbers, ModelQuestion, checked_numbers
from podium_lab.models.features import Features
from podium_lab.models.scorer_file import INPUTS, OUTPUT, SCHEMA_KEY, ScorerFileError, check_schema, shape_problem

BINARY: Final = "binary_tensor_data"
HEADER_LENGTH: Final = "Inference-Header-Content-Length"
DATATYPES: Final[Mapping[str, str]] = {"nodes": "FP32", "pod": "FP32", "global": "FP32", "mask": "BOOL", OUTPUT: "FP32"}
DTYPES: Final = {"FP16": "<f2", "FP32": "<f4", "FP64": "<f8"}
BYTES_PER_NODE, BYTES_OTHERWISE = 64, 1 << 18
"""How large an answer may be: a number needs at most 25 bytes, and there may be other outputs."""
DECIMALS: Final = 6


class _Tensor(msgspec.Struct):
    name: str
    datatype: str = ""
    shape: list[int] = []
    parameters: dict[str, Any] | None = None
    data: Any = None


class _Metadata(msgspec.Struct):
    name: str = ""
    inputs: list[_Tensor] | None = None
    outputs: list[_Tensor] | None = None
    parameters: dict[str, Any] | None = None
    properties: dict[str, Any] | None = None


class _Server(msgspec.Struct):
    extensions: list[str] | None = None


class _Result(msgspec.Struct):
    outputs: list[_Tensor]
    id: str | None = None


class OpenInferenceModel:
    """One model of one server; `warn` is called once where its metadata leaves something unchecked."""

    def __init__(
        self, access: ServerAccess, model: str, version: str, *, binary: bool | None, warn: Any = lambda _sentence: None
    ) -> None:
        self.name = f"model {model} of {access.url}"
        self._path = f"/v2/models/{quote(model, safe='')}" + (f"/versions/{quote(version, safe='')}" if version else "")
        self._wanted_binary = binary
        self._binary = bool(binary)
        self._inputs: tuple[str, ...] = tuple(INPUTS)
        self._warn = warn
        self._warned = False
        self._channel = Channel(access, self._check)

    def prepare(self) -> None:
        self._channel.prepare()

    def close(self) -> None:
        self._channel.close()

    def ask(self, question: ModelQuestion, deadline: float) -> ModelNumbers:
        # The connection first: what is sent depends on what the model's metadata says.
        self._channel.ready(deadline)
        body, headers = self._request(question)
        nodes = len(question.names)
        largest = BYTES_OTHERWISE + BYTES_PER_NODE * nodes
        reply = self._channel.post(f"{self._path}/infer", body, headers, deadline, largest)
        try:
            return ModelNumbers(checked_numbers(self._scores(reply, nodes, question.decision), nodes, self.name))
        except ModelError:
            self._channel.close()  # the model may be another one by now: check it again
            raise

    # Before the first question

    def _check(self, exchange: Exchange) -> None:
        exchange("GET", "/v2/health/ready")
        found = self._decode(exchange("GET", self._path).body, _Metadata, "its metadata")
        self._check_metadata(found)
        if self._wanted_binary is None:
            try:
                server = self._decode(exchange("GET", "/v2").body, _Server, "what the server says of itself")
                self._binary = BINARY in (server.extensions or ())
            except ModelError:
                self._binary = False

    def _check_metadata(self, metadata: _Metadata) -> None:
        inputs, outputs = metadata.inputs or [], metadata.outputs or []
        for problem in self._problems(inputs, outputs):
            raise ModelError("schema", f"{self.name}: {problem}")
        holders = [metadata.parameters, metadata.properties, *(each.parameters for each in (*inputs, *outputs))]
        schema = next((str(each[SCHEMA_KEY]) for each in holders if each and each.get(SCHEMA_KEY)), "")
        try:
            warning = check_schema({SCHEMA_KEY: schema}, self.name)
        except ScorerFileError as error:
            raise ModelError("schema", str(error)) from None
        if warning and not self._warned:
            self._warned = True
            self._warn(warning)
        self._inputs = tuple(each.name for each in inputs) or tuple(INPUTS)

    def _problems(self, inputs: list[_Tensor], outputs: list[_Tensor]) -> Iterator[str]:
        for each in inputs:
            problem = shape_problem(each.name, tuple(each.shape))
            if problem:
                yield problem
            elif each.datatype and each.datatype != DATATYPES[each.name]:
                yield f"{each.name} is {printable(each.datatype)}, and should be {DATATYPES[each.name]}"
        if inputs and "nodes" not in {each.name for each in inputs}:
            yield "has no input named nodes"
        scores = next((each for each in outputs if each.name == OUTPUT), None)
        if outputs and scores is None:
            yield f"has no output named {OUTPUT}"
        if scores is not None and scores.datatype and scores.datatype not in DTYPES:
            yield f"{OUTPUT} is {printable(scores.datatype)}, and should be FP32"

    # A question

    def _request(self, question: ModelQuestion) -> tuple[bytes, dict[str, str]]:
        features = question.features()
        tensors = _tensors(features)
        if not self._binary:
            given = [
                {
                    "name": name,
                    "datatype": DATATYPES[name],
                    "shape": list(tensors[name].shape),
                    "data": _plain(tensors[name]),
                }
                for name in self._inputs
            ]
            body = {"id": question.decision, "inputs": given, "outputs": [{"name": OUTPUT}]}
            return msgspec.json.encode(body), {"Content-Type": "application/json"}
        contents = {name: tensors[name].tobytes() for name in self._inputs}
        head = msgspec.json.encode(
            {
                "id": question.decision,
                "inputs": [
                    {
                        "name": name,
                        "datatype": DATATYPES[name],
                        "shape": list(tensors[name].shape),
                        "parameters": {"binary_data_size": len(contents[name])},
                    }
                    for name in self._inputs
                ],
                "outputs": [{"name": OUTPUT, "parameters": {"binary_data": True}}],
            }
        )
        headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(head))}
        return b"".join((head, *contents.values())), headers

    def _scores(self, reply: HttpReply, nodes: int, decision: str) -> NDArray[np.float64]:
        length = reply.headers.get(HEADER_LENGTH.lower(), "")
        head, rest = reply.body, b""
        if length:
            if not (length.isascii() and length.isdecimal() and len(length) < 10 and int(length) <= len(head)):
                raise ModelError("schema", f"{self.name} answered with a wrong {HEADER_LENGTH}")
            head, rest = head[: int(length)], head[int(length) :]
        result = self._decode(head, _Result, "its answer")
        if result.id and result.id != decision:
            raise ModelError("schema", f"{self.name} answered about another decision")
        at = 0
        for each in result.outputs:
            size_given: Any = (each.parameters or {}).get("binary_data_size")
            binary = type(size_given) is int and size_given >= 0
            size = size_given if binary else 0
            if each.name == OUTPUT:
                _check_shape(self.name, each.shape, nodes)
                return self._binary_scores(each, rest[at : at + size]) if binary else self._json_scores(each, nodes)
            at += size
        raise ModelError("schema", f"{self.name} gave no output named {OUTPUT}")

    def _binary_scores(self, tensor: _Tensor, content: bytes) -> NDArray[np.float64]:
        dtype = DTYPES.get(tensor.datatype or "FP32")
        if dtype is None or len(content) % np.dtype(dtype).itemsize:
            raise ModelError("schema", f"{self.name} gave {OUTPUT} as {printable(tensor.datatype)}, not as FP32")
        return np.frombuffer(content, dtype=dtype).astype(np.float64)

    def _json_scores(self, tensor: _Tensor, nodes: int) -> NDArray[np.float64]:
        data = tensor.data
        while isinstance(data, list) and len(data) == 1 and isinstance(data[0], list):
            data = data[0]
        if not isinstance(data, list) or len(data) != nodes:
            number = len(data) if isinstance(data, list) else 0
            raise ModelError("schema", f"{self.name} scored {number} nodes, and was asked about {nodes}")
        if any(each is None for each in data):
            raise ModelError("nan", f"{self.name} gave a score that is not a finite number")
        if not all(type(each) in (int, float) for each in data):
            raise ModelError("schema", f"{self.name} gave a score that is no number")
        return np.array([float(each) if abs(each) < 1e308 else math.inf for each in data], dtype=np.float64)

    def _decode(self, body: bytes, kind: type[Any], what: str) -> Any:
        return decoded(body, kind, f"{self.name}: {what}")


def decoded(body: bytes, kind: type[Any], what: str) -> Any:
    """JSON of a type; raises ModelError. NaN and Infinity are no JSON, but servers write them."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise ModelError("schema", f"{what} is not as it should be: {error}") from None
    except UNDECODABLE as error:
        if b"NaN" in body or b"Infinity" in body:
            raise ModelError("nan", f"{what} has a number that is not finite") from None
        raise ModelError("exception", f"{what} is no JSON: {error}") from None


def _tensors(features: Features) -> dict[str, NDArray[Any]]:
    given = {"nodes": features.nodes, "pod": features.pod, "global": features.globals, "mask": features.mask}
    return {name: np.ascontiguousarray(array)[np.newaxis] for name, array in given.items()}


def _plain(tensor: NDArray[Any]) -> list[Any]:
    flat = tensor.reshape(-1)
    if flat.dtype == np.bool_:
        return flat.tolist()
    found: list[Any] = np.round(flat.astype(np.float64), DECIMALS).tolist()
    return found


def _check_shape(source: str, shape: list[int], nodes: int) -> None:
    if shape and shape not in ([1, nodes], [nodes], [1, nodes, 1]):
        raise ModelError("schema", f"{source} gave {OUTPUT} of the shape {shape[:5]}, and should give [1, {nodes}]")

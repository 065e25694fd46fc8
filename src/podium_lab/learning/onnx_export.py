"""Writes a policy as an ONNX graph: terms of nodes in, scores out, for any number of nodes.

    nodes   float32[nodes, terms]   the terms of `podium_plugins.gpu.terms`, weighed ones and scar, rank, price
    pod     float32[groups]         1 for the pod's group, 0 for the others
    mask    bool[nodes]             which nodes fit
    scores  float32[nodes]          −1e8 where the mask excludes a node; points = ⌊offset + scale·score + ½⌋

The metadata has the policy's checksum, the hash of the terms and the calibration. Needs the package onnx.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium_lab.learned.policy_file import PolicyFile, checksum
from podium_lab.learning.extra import needed
from podium_plugins.gpu.terms import Floats

OPSET = 17
IR_VERSION = 8
NOT_ALLOWED = -1e8


def onnx_bytes(policy: PolicyFile) -> bytes:
    """The graph of a policy; raises LearningError where onnx is not installed."""
    onnx = needed("onnx")
    helper, numbers = onnx.helper, onnx.numpy_helper
    steps: list[Any] = []
    constants: list[Any] = []

    def constant(name: str, value: Floats) -> str:
        constants.append(numbers.from_array(np.asarray(value, dtype=np.float32), name))
        return name

    def axis(name: str, at: int) -> str:
        constants.append(numbers.from_array(np.array([at], dtype=np.int64), name))
        return name

    def step(operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        steps.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    first, last = axis("axis_nodes", 0), axis("axis_terms", 1)
    column = step("Unsqueeze", ["pod", last], "pod_column")
    own = step("MatMul", [step("Transpose", [constant("linear", policy.matrix())], "linear_t"), column], "own_weights")
    score = step("MatMul", ["nodes", own], "linear_score")
    network = policy.correction()
    if network is not None:
        row = step("Unsqueeze", ["pod", first], "pod_row")
        bias = step("MatMul", [row, constant("bias", network.bias)], "own_bias")
        weighed = step("MatMul", ["nodes", constant("first", network.first.T)], "weighed")
        hidden = step("Softsign", [step("Add", [weighed, bias], "first_sum")], "hidden")
        allowed = step("Unsqueeze", [step("Cast", ["mask"], "mask_number", to=onnx.TensorProto.FLOAT), last], "allowed")
        fitting = step("Mul", [hidden, allowed], "hidden_allowed")
        total = step("ReduceSum", [fitting, first], "hidden_sum", keepdims=1)
        count = step("ReduceSum", [allowed, first], "count", keepdims=1)
        mean = step("Div", [total, step("Max", [count, constant("one", np.array([[1.0]]))], "count_above_0")], "mean")
        excluded = step("Sub", [allowed, "one"], "excluded")  # 0, or −1
        lowered = step("Add", [hidden, step("Mul", [excluded, constant("two", np.array([[4.0]]))], "lower")], "lowered")
        most = step("ReduceMax", [lowered], "most", axes=[0], keepdims=1)
        pool = step("Concat", [mean, most], "pool", axis=1)
        mixed = step("MatMul", [pool, constant("pooled", network.pooled.T)], "mixed")
        context = step("Add", [mixed, constant("second_bias", network.second_bias[np.newaxis])], "context")
        inner = step("MatMul", [hidden, constant("second", network.second.T)], "second_sum")
        second = step("Softsign", [step("Add", [inner, context], "second_in")], "second_out")
        ends = step("MatMul", [row, constant("last", network.last)], "own_last")
        correction = step("MatMul", [second, step("Transpose", [ends], "own_last_t")], "correction")
        score = step("Add", [score, correction], "corrected")
    flat = step("Squeeze", [score, last], "flat")
    step("Where", ["mask", flat, constant("not_allowed", np.array(NOT_ALLOWED))], "scores")

    tensor = onnx.TensorProto
    terms, groups = policy.matrix().shape[1], policy.matrix().shape[0]
    graph = helper.make_graph(
        steps,
        policy.name,
        [
            helper.make_tensor_value_info("nodes", tensor.FLOAT, ["nodes", terms]),
            helper.make_tensor_value_info("pod", tensor.FLOAT, [groups]),
            helper.make_tensor_value_info("mask", tensor.BOOL, ["nodes"]),
        ],
        [helper.make_tensor_value_info("scores", tensor.FLOAT, ["nodes"])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="podium")
    model.ir_version = IR_VERSION
    facts = {
        "policy": policy.name,
        "version": policy.version,
        "sha256": checksum(policy),
        "termsHash": policy.terms_hash,
        "offset": repr(policy.calibration.offset),
        "scale": repr(policy.calibration.scale),
    }
    helper.set_model_props(model, facts)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())

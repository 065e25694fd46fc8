"""Builds the ONNX graph of a set scorer, step by step as `set_scorer.forward` computes it, but for the value."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium_lab.models.schema import LIMIT, F, G, P
from podium_lab.models.set_scorer import LAYERS, NOT_FEASIBLE, SCALING, Weights


def scorer_graph(onnx: Any, weights: Weights) -> Any:
    """The graph; `onnx` is the package."""
    helper, numbers, tensor = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    steps: list[Any] = []
    constants = [
        numbers.from_array(np.asarray(weights[name], dtype=np.float32), name)
        for name in (*SCALING, *(f"{layer}_{part}" for layer in LAYERS[:4] for part in "wb"))
    ]

    def constant(name: str, value: Any, kind: Any = np.float32) -> str:
        constants.append(numbers.from_array(np.asarray(value, dtype=kind), name))
        return name

    def step(operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        steps.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    low, high = constant("lowest", -LIMIT), constant("highest", LIMIT)
    at_nodes, last = constant("axis_nodes", [1], np.int64), constant("axis_last", [2], np.int64)

    def scaled(name: str, given: str) -> str:
        centred = step("Sub", [given, f"{name}_mean"], f"{name}_centred")
        divided = step("Div", [centred, f"{name}_deviation"], f"{name}_divided")
        return step("Clip", [divided, low, high], f"{name}_scaled")

    def layer(name: str, given: str) -> str:
        return step("Add", [step("MatMul", [given, f"{name}_w"], f"{name}_product"), f"{name}_b"], f"{name}_sum")

    def repeated(rows: str, width: int) -> str:
        """The same context for each node."""
        wanted = step("Concat", [sizes, constant(f"{rows}_width", [width], np.int64)], f"{rows}_shape", axis=0)
        return step("Expand", [rows, wanted], f"{rows}_of_nodes")

    allowed = step("Unsqueeze", [step("Cast", ["mask"], "mask_number", to=tensor.FLOAT), last], "allowed")
    zero, one = constant("zero", 0.0), constant("one", 1.0)
    x = scaled("node", "nodes")
    context = step("Concat", [scaled("pod", "pod"), scaled("global", "global")], "context", axis=1)
    context_rows = step("Unsqueeze", [context, at_nodes], "context_rows")
    first, second = constant("from", [0], np.int64), constant("to", [2], np.int64)
    sizes = step("Slice", [step("Shape", [allowed], "shape"), first, second], "batch_and_nodes")
    given = step("Concat", [x, repeated(context_rows, P + G)], "given", axis=2)
    hidden = step("Tanh", [layer("phi1", given)], "phi1_out")
    hidden = step("Tanh", [layer("phi2", hidden)], "hidden")
    total = step("ReduceSum", [step("Mul", [hidden, allowed], "counted"), at_nodes], "total", keepdims=1)
    number = step("ReduceSum", [allowed, at_nodes], "number", keepdims=1)
    mean = step("Div", [total, step("Max", [number, one], "number_above_0")], "mean")
    is_allowed = step("Greater", [allowed, zero], "is_allowed")
    lowered = step("Where", [is_allowed, hidden, constant("minus_one", -1.0)], "lowered")
    most = step("ReduceMax", [lowered], "most", axes=[1], keepdims=1)
    pool = step("Concat", [mean, most], "pool", axis=2)
    units = int(np.asarray(weights["phi2_w"]).shape[1])
    pooled = repeated(pool, 2 * units)
    judged = step("Tanh", [layer("rho1", step("Concat", [hidden, pooled], "rho1_in", axis=2))], "judged")
    flat = step("Squeeze", [layer("rho2", judged), last], "flat")
    step("Where", ["mask", flat, constant("not_feasible", NOT_FEASIBLE)], "scores")
    return helper.make_graph(
        steps,
        "set-scorer",
        [
            helper.make_tensor_value_info("nodes", tensor.FLOAT, ["batch", "width", F]),
            helper.make_tensor_value_info("pod", tensor.FLOAT, ["batch", P]),
            helper.make_tensor_value_info("global", tensor.FLOAT, ["batch", G]),
            helper.make_tensor_value_info("mask", tensor.BOOL, ["batch", "width"]),
        ],
        [helper.make_tensor_value_info("scores", tensor.FLOAT, ["batch", "width"])],
        constants,
    )

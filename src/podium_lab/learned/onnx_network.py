"""Scores nodes by the ONNX graph of a policy, on onnxruntime, one thread.

The graph lies beside the policy file, with the same name and the ending .onnx, and says whose it is: the checksum in
its metadata must be the policy's. Numbers are single precision there, so that points may differ by one where a score
lies next to a limit; the network in NumPy is in double precision and the same on every machine.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.kube.printable import printable
from podium_lab.learned.onnx_file import LARGEST_GRAPH, read_graph
from podium_lab.learned.policy_file import PolicyError, PolicyFile
from podium_plugins.gpu.terms import GROUPS, Floats

SHOWN = 300
"""Characters of what onnxruntime says."""


class OnnxScore:
    """A graph that is ready to score."""

    def __init__(self, path: Path, policy: PolicyFile) -> None:
        """Raises PolicyError."""
        try:
            with path.open("rb") as file:
                given = file.read(LARGEST_GRAPH + 1)
        except OSError as error:
            raise PolicyError(f"{path}: cannot be read: {error.strerror}; podium policy export writes it") from None
        facts, content = read_graph(given, str(path))
        if facts.get("sha256") != policy.sha256:
            raise PolicyError(f"{path}: is not of this policy; podium policy export writes it again", "schema")
        try:
            runtime: Any = import_module("onnxruntime")
        except ImportError:
            raise PolicyError('runtime "onnx": onnxruntime is not installed; install podium[learn]') from None
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        try:
            self._session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the library does not say what it raises
            why = printable(str(error)[:SHOWN])
            raise PolicyError(f"{path}: onnxruntime refuses it: {why}", "schema") from None
        self._groups = np.eye(len(GROUPS), dtype=np.float32)

    def scores(self, terms: Floats, group: int, fitting: NDArray[np.bool_]) -> Floats:
        """The score of each node, of terms[terms, nodes]."""
        given = {"nodes": np.ascontiguousarray(terms.T, dtype=np.float32), "pod": self._groups[group], "mask": fitting}
        found: Floats = self._session.run(["scores"], given)[0].astype(np.float64)
        return found

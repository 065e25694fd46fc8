"""Serves a scorer that Podium exported with MLServer: a runtime for ONNX files, in twenty lines.

    pip install mlserver onnxruntime
    cp scorer.onnx .            # what `podium train` exported
    mlserver start .

Then give ModelScore `url: http://HOST:8080` and `model: placement`.
"""

import numpy as np
import onnxruntime
from mlserver import MLModel
from mlserver.types import (
    InferenceRequest,
    InferenceResponse,
    MetadataModelResponse,
    MetadataTensor,
    Parameters,
    ResponseOutput,
)
from mlserver.utils import get_model_uri

TYPES = {"tensor(float)": ("FP32", np.float32), "tensor(bool)": ("BOOL", np.bool_)}


class PodiumScorer(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = await get_model_uri(self._settings)
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return True

    async def metadata(self) -> MetadataModelResponse:
        found = self._session.get_modelmeta().custom_metadata_map
        return MetadataModelResponse(
            name=self.name,
            platform="onnxruntime",
            inputs=[self._tensor(each) for each in self._session.get_inputs()],
            outputs=[self._tensor(each) for each in self._session.get_outputs()],
            parameters=Parameters(schema=found.get("schema", "")),  # ModelScore checks the features by it
        )

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        types = {each.name: TYPES[each.type][1] for each in self._session.get_inputs()}
        given = {
            each.name: np.array(each.data.root, dtype=types[each.name]).reshape(each.shape) for each in payload.inputs
        }
        scores = self._session.run(["scores"], given)[0]
        output = ResponseOutput(
            name="scores", shape=list(scores.shape), datatype="FP32", data=scores.reshape(-1).tolist()
        )
        return InferenceResponse(id=payload.id, model_name=self.name, outputs=[output])

    def _tensor(self, each) -> MetadataTensor:
        shape = [width if isinstance(width, int) else -1 for width in each.shape]
        return MetadataTensor(name=each.name, datatype=TYPES[each.type][0], shape=shape)

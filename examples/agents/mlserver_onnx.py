"""Serves an ONNX scorer with MLServer: a runtime of one class, beside MLServer in an environment of its own.

    pip install mlserver onnxruntime
    mlserver start FOLDER          # FOLDER has this file, the scorer, and model-settings.json:

    {"name": "placement", "implementation": "mlserver_onnx.OnnxRuntime", "parameters": {"uri": "./scorer.onnx"}}

ModelScore then asks url http://127.0.0.1:8080, model placement.
"""

import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor, Parameters
from mlserver.utils import get_model_uri

DATATYPES = {"tensor(float)": "FP32", "tensor(bool)": "BOOL"}


class OnnxRuntime(MLModel):
    """One ONNX file."""

    async def load(self) -> bool:
        session = onnxruntime.InferenceSession(await get_model_uri(self._settings), providers=["CPUExecutionProvider"])
        self._session = session
        facts = session.get_modelmeta().custom_metadata_map
        self.inputs = [_tensor(each, facts) for each in session.get_inputs()]
        self.outputs = [_tensor(each, facts) for each in session.get_outputs()]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        given = {each.name: NumpyCodec.decode_input(each) for each in payload.inputs}
        given["mask"] = given["mask"].astype(bool)
        found = self._session.run(None, given)
        outputs = [
            NumpyCodec.encode_output(each.name, part)
            for each, part in zip(self._session.get_outputs(), found, strict=True)
        ]
        return InferenceResponse(id=payload.id, model_name=self.name, outputs=outputs)


def _tensor(each, facts: dict[str, str]) -> MetadataTensor:
    shape = [size if isinstance(size, int) else -1 for size in each.shape]
    parameters = Parameters(schema=facts.get("schema", ""))
    return MetadataTensor(name=each.name, datatype=DATATYPES[each.type], shape=shape, parameters=parameters)

"""MNN, CPU backend, f32 arithmetic ("high" precision)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import MNN
import numpy as np

_SESSION_INFO_BACKENDS = 2
_BACKEND_NAMES = {0: "CPU", 1: "Metal", 2: "CUDA", 3: "OpenCL", 6: "OpenGL", 7: "Vulkan", 13: "CPU SIMD extension"}
_HALIDE_TYPES = {
    "float32": MNN.Halide_Type_Float,
    "int32": MNN.Halide_Type_Int,
    "uint8": MNN.Halide_Type_Uint8,
}


class Peer:
    def version(self) -> str:
        return str(MNN.version())

    def prepare(self, model: Path, workdir: Path, signature: dict[str, Any]) -> Path:
        # The converter's own entry point, not the `mnnconvert` script: that one installs a logging package into
        # whichever Python `pip` belongs to and reports each conversion to its vendor.
        import _tools

        artifact = workdir / "model.mnn"
        command = ["mnnconvert", "-f", "ONNX", "--modelFile", str(model), "--MNNModel", str(artifact)]
        _tools.mnnconvert([*command, "--bizCode", "benchmark"])
        if not artifact.exists():
            raise RuntimeError("mnnconvert wrote no model")
        return artifact

    def load(self, artifact: Path, threads: int, device: str, signature: dict[str, Any]) -> str:
        self._interpreter = MNN.Interpreter(str(artifact))
        weights = Path(f"{artifact}.weight")
        if weights.exists():
            self._interpreter.setExternalFile(str(weights))
        config = {"backend": "CPU", "numThread": threads, "precision": "high", "power": "high"}
        self._session = self._interpreter.createSession(config)
        tensors = self._interpreter.getSessionInputAll(self._session)
        self._inputs = [tensors[entry["name"]] for entry in signature["inputs"]]
        for tensor, entry in zip(self._inputs, signature["inputs"], strict=True):
            self._interpreter.resizeTensor(tensor, tuple(entry["shape"]))
        self._interpreter.resizeSession(self._session)
        self._output_names = signature["outputs"]
        backends = self._interpreter.getSessionInfo(self._session, _SESSION_INFO_BACKENDS)
        names = [_BACKEND_NAMES.get(int(code), f"backend {code}") for code in np.atleast_1d(backends)]
        return "+".join(names)

    def bind(self, inputs: list[Any]) -> list[Any]:
        return [array.astype(np.int32) if array.dtype == np.int64 else array for array in inputs]

    def run(self, inputs: list[Any]) -> list[Any]:
        for tensor, array in zip(self._inputs, inputs, strict=True):
            kind = _HALIDE_TYPES[array.dtype.name]
            tensor.copyFrom(MNN.Tensor(array.shape, kind, array, MNN.Tensor_DimensionType_Caffe))
        self._interpreter.runSession(self._session)
        results = []
        for name in self._output_names:
            device_tensor = self._interpreter.getSessionOutput(self._session, name)
            shape = device_tensor.getShape()
            dtype = device_tensor.getDataType()
            empty = np.empty(shape, np.float32 if dtype == MNN.Halide_Type_Float else np.int32)
            host = MNN.Tensor(shape, dtype, empty, MNN.Tensor_DimensionType_Caffe)
            device_tensor.copyToHostTensor(host)
            results.append(np.array(host.getNumpyData(), copy=True).reshape(shape))
        return results

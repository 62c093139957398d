"""ncnn, CPU or Vulkan, f32 arithmetic; converted by pnnx."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import ncnn
import numpy as np

# pnnx's name of each input type it accepts.
_PNNX_DTYPES = {"float32": "f32", "float16": "f16", "int32": "i32", "int64": "i64"}


class Peer:
    def version(self) -> str:
        return str(ncnn.__version__)

    def prepare(self, model: Path, workdir: Path, signature: dict[str, Any]) -> Path:
        shapes = ",".join(
            f"[{','.join(map(str, entry['shape']))}]{_PNNX_DTYPES[entry['dtype']]}" for entry in signature["inputs"]
        )
        command = [str(_pnnx()), str(model), f"inputshape={shapes}", "fp16=0"]
        result = subprocess.run(command, check=False, cwd=workdir, capture_output=True, text=True)
        param = model.with_suffix(".ncnn.param")
        if result.returncode != 0 or not param.exists():
            raise RuntimeError(f"pnnx failed: {(result.stderr or result.stdout).strip()[-800:]}")
        return param

    def load(self, artifact: Path, threads: int, device: str, signature: dict[str, Any]) -> str:
        self._net = ncnn.Net()
        options = self._net.opt
        options.num_threads = threads
        options.use_vulkan_compute = device == "vulkan"
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
        options.use_bf16_storage = False
        if device == "vulkan" and ncnn.get_gpu_count() == 0:
            raise RuntimeError("ncnn finds no Vulkan device")
        if self._net.load_param(str(artifact)) != 0:
            raise RuntimeError("ncnn does not load the graph")
        if self._net.load_model(str(artifact.with_suffix(".bin"))) != 0:
            raise RuntimeError("ncnn does not load the weights")
        self._inputs = self._net.input_names()
        self._outputs = self._net.output_names()
        if len(self._inputs) != len(signature["inputs"]):
            raise RuntimeError(f"the converted model has {len(self._inputs)} inputs, not {len(signature['inputs'])}")
        if not options.use_vulkan_compute:
            return "CPU"
        return f"Vulkan {ncnn.get_gpu_info(ncnn.get_default_gpu_index()).device_name()}"

    def bind(self, inputs: list[Any]) -> list[Any]:
        # ncnn's Mat has no batch dimension: pnnx drops it.
        arrays = [array[0] if array.ndim > 1 and array.shape[0] == 1 else array for array in inputs]
        return [np.ascontiguousarray(a.astype(np.int32) if a.dtype == np.int64 else a) for a in arrays]

    def run(self, inputs: list[Any]) -> list[Any]:
        with self._net.create_extractor() as extractor:
            for name, array in zip(self._inputs, inputs, strict=True):
                extractor.input(name, ncnn.Mat(array))
            results = []
            for name in self._outputs:
                code, mat = extractor.extract(name)
                if code != 0:
                    raise RuntimeError(f"ncnn could not compute output {name} (code {code})")
                results.append(np.array(mat))
            return results


def _pnnx() -> Path:
    # Found without importing it: its Python package wants PyTorch, the program beside it does not.
    spec = importlib.util.find_spec("pnnx")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("pnnx is not installed")
    return Path(spec.origin).with_name("pnnx")

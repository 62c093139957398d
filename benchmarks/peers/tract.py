"""tract, its CPU runtime (one thread: the Python bindings offer no thread pool)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tract

_DTYPES = {"float32": "f32", "float16": "f16", "int32": "i32", "int64": "i64", "bool": "bool"}


class Peer:
    def version(self) -> str:
        return tract.version()

    def load(self, artifact: Path, threads: int, device: str, signature: dict[str, Any]) -> str:
        if threads != 1:
            raise RuntimeError("the Python bindings run one thread only")
        model = tract.onnx().load(artifact)
        for index, entry in enumerate(signature["inputs"]):
            model.set_input_fact(index, ",".join([*map(str, entry["shape"]), _DTYPES[entry["dtype"]]]))
        runtime = tract.runtime_for_name("default")
        self._runnable = runtime.prepare(model.into_model())
        return f"CPU ({runtime.name()})"

    def bind(self, inputs: list[Any]) -> list[Any]:
        return [np.ascontiguousarray(array) for array in inputs]

    def run(self, inputs: list[Any]) -> list[Any]:
        return [tensor.to_numpy() for tensor in self._runnable.run(inputs)]

"""ONNX Runtime, CPU execution provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnxruntime as ort


class Peer:
    def version(self) -> str:
        return str(ort.__version__)

    def load(self, artifact: Path, threads: int, device: str, signature: dict[str, Any]) -> str:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        self._session = ort.InferenceSession(artifact, options, providers=["CPUExecutionProvider"])
        self._names = [entry["name"] for entry in signature["inputs"]]
        return "+".join(self._session.get_providers())

    def run(self, inputs: list[Any]) -> list[Any]:
        outputs: list[Any] = self._session.run(None, dict(zip(self._names, inputs, strict=True)))
        return outputs

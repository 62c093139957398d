"""OpenVINO, CPU plugin, f32 arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openvino as ov


class Peer:
    def version(self) -> str:
        return str(ov.__version__)

    def load(self, artifact: Path, threads: int, device: str, signature: dict[str, Any]) -> str:
        core = ov.Core()
        model = core.read_model(artifact)
        config = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            # The default is bf16 on CPUs that have it; the others compute in f32.
            "INFERENCE_PRECISION_HINT": "f32",
            # The harness pins the process; the plugin would pin its threads to CPUs of its own choice.
            "ENABLE_CPU_PINNING": False,
        }
        compiled = core.compile_model(model, "CPU", config)
        self._request = compiled.create_infer_request()
        self._outputs = compiled.outputs
        precision = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        return f"{'+'.join(compiled.get_property('EXECUTION_DEVICES'))} {precision}"

    def run(self, inputs: list[Any]) -> list[Any]:
        results = self._request.infer(inputs)
        return [results[output] for output in self._outputs]

"""LiteRT (TensorFlow Lite) with the XNNPACK delegate; converted from PyTorch by litert-torch."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

_DELEGATE = "DELEGATE"


class Peer:
    def version(self) -> str:
        from ai_edge_litert import interpreter  # noqa: F401 - its libraries count as the engine's, not the model's

        return metadata.version("ai-edge-litert")

    def prepare(self, model: Path, workdir: Path, signature: dict[str, Any]) -> Path:
        sys.path.append(str(Path(__file__).with_name("shared")))
        import litert_torch
        import onnx_torch

        module, inputs = onnx_torch.load(model, signature)
        artifact = workdir / "model.tflite"
        litert_torch.convert(module, inputs).export(str(artifact))
        return artifact

    def load(self, artifact: Path, threads: int, device: str, signature: dict[str, Any]) -> str:
        from ai_edge_litert.interpreter import Interpreter

        self._interpreter = Interpreter(model_path=str(artifact), num_threads=threads)
        self._interpreter.allocate_tensors()
        self._runner = self._interpreter.get_signature_runner()
        self._inputs = sorted(self._runner.get_input_details(), key=_position)
        self._outputs = sorted(self._runner.get_output_details(), key=_position)
        return _backend(self._interpreter._get_ops_details())

    def bind(self, inputs: list[Any]) -> list[Any]:
        # The converter narrows 64-bit integers.
        details = self._runner.get_input_details()
        return [array.astype(details[name]["dtype"]) for name, array in zip(self._inputs, inputs, strict=True)]

    def run(self, inputs: list[Any]) -> list[Any]:
        results = self._runner(**dict(zip(self._inputs, inputs, strict=True)))
        return [results[name] for name in self._outputs]


def _backend(operators: list[dict[str, Any]]) -> str:
    """Who computes what. The interpreter lists the model's operators and, besides, one `DELEGATE` for each part of the
    graph that XNNPACK took over; a part holds what lies between the delegate's outputs and its inputs."""
    model = [operator for operator in operators if operator["op_name"] != _DELEGATE]
    delegates = [operator for operator in operators if operator["op_name"] == _DELEGATE]
    if not delegates:
        return "TensorFlow Lite's own kernels"
    producer = {int(tensor): index for index, operator in enumerate(model) for tensor in operator["outputs"]}
    taken: set[int] = set()
    for delegate in delegates:
        border = {int(tensor) for tensor in delegate["inputs"]}
        pending = [int(tensor) for tensor in delegate["outputs"]]
        while pending:
            tensor = pending.pop()
            index = producer.get(tensor)
            if tensor in border or index is None or index in taken:
                continue
            taken.add(index)
            pending += [int(operand) for operand in model[index]["inputs"]]
    return f"XNNPACK, {len(model) - len(taken)} of {len(model)} operators outside it"


def _position(name: str) -> int:
    """Position in `args_0` or `output_0`."""
    return int(name.rsplit("_", 1)[1])

"""Apache TVM: its default Relax pipeline for LLVM, without tuning (tuning takes hours a model)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


class Peer:
    def version(self) -> str:
        import tvm

        return str(tvm.__version__)

    def prepare(self, model: Path, workdir: Path, signature: dict[str, Any]) -> Path:
        import onnx
        import tvm
        from tvm import relax
        from tvm.relax.frontend.onnx import from_onnx

        shapes = {entry["name"]: entry["shape"] for entry in signature["inputs"]}
        module = from_onnx(onnx.load(model), shape_dict=shapes)
        target = tvm.target.Target({"kind": "llvm", "mcpu": _host_cpu()})
        artifact = workdir / "model.so"
        with target:
            module = relax.get_pipeline("zero")(module)
        relax.build(module, target).export_library(str(artifact))
        artifact.with_suffix(".target").write_text(str(target.kind.name) + " " + target.attrs["mcpu"])
        return artifact

    def load(self, artifact: Path, threads: int, device: str, signature: dict[str, Any]) -> str:
        import tvm
        from tvm import relax

        self._device = tvm.cpu()
        self._machine = relax.VirtualMachine(tvm.runtime.load_module(str(artifact)), self._device)
        return artifact.with_suffix(".target").read_text()

    def run(self, inputs: list[Any]) -> list[Any]:
        import tvm

        result = self._machine["main"](*(tvm.runtime.tensor(array, self._device) for array in inputs))
        results = result if not hasattr(result, "numpy") else [result]
        return [np.asarray(tensor.numpy()) for tensor in results]


def _host_cpu() -> str:
    """LLVM's name of this CPU, asked of TVM's own LLVM."""
    import tvm

    return str(tvm.target.codegen.llvm_get_system_cpu())

"""ExecuTorch with the XNNPACK backend; exported from PyTorch."""

from __future__ import annotations

import json
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

_BACKEND = "XnnpackBackend"


class Peer:
    def version(self) -> str:
        from executorch.runtime import Runtime  # here, so that its libraries count as the engine's, not the model's

        Runtime.get()
        return metadata.version("executorch")

    def prepare(self, model: Path, workdir: Path, signature: dict[str, Any]) -> Path:
        sys.path.append(str(Path(__file__).with_name("shared")))
        import onnx_torch
        import torch
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import to_edge_transform_and_lower

        module, inputs = onnx_torch.load(model, signature)
        program = torch.export.export(module, inputs)
        lowered = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])
        executable = lowered.to_executorch()
        artifact = workdir / "model.pte"
        artifact.write_bytes(executable.buffer)
        artifact.with_suffix(".json").write_text(json.dumps(_instructions(executable.executorch_program)))
        return artifact

    def load(self, artifact: Path, threads: int, device: str, signature: dict[str, Any]) -> str:
        from executorch.extension.pybindings import portable_lib
        from executorch.runtime import Runtime

        # The pool takes every core of the machine otherwise, whatever the affinity.
        portable_lib._unsafe_reset_threadpool(threads)
        self._method = Runtime.get().load_program(str(artifact)).load_method("forward")
        calls = json.loads(artifact.with_suffix(".json").read_text())
        pool = portable_lib._threadpool_get_thread_count()
        if pool != threads:
            raise RuntimeError(f"the thread pool has {pool} threads, not {threads}")
        outside = sum(count for name, count in calls.items() if name != _BACKEND)
        backend = _BACKEND if _BACKEND in calls else "portable kernels"
        return f"{backend}, {outside} of {sum(calls.values())} calls outside it"

    def bind(self, inputs: list[Any]) -> list[Any]:
        import torch

        return [torch.from_numpy(array) for array in inputs]

    def run(self, inputs: list[Any]) -> list[Any]:
        return [tensor.numpy() for tensor in self._method.execute(inputs)]


def _instructions(program: Any) -> dict[str, int]:
    """Calls of the program by who runs them: a delegate's name, or `kernel`."""
    counts: Counter[str] = Counter()
    for plan in program.execution_plan:
        for chain in plan.chains:
            for instruction in chain.instructions:
                call = type(instruction.instr_args).__name__
                if call == "DelegateCall":
                    counts[plan.delegates[instruction.instr_args.delegate_index].id] += 1
                elif call == "KernelCall":
                    counts["kernel"] += 1
    return dict(counts)

"""Programs through a pipeline, iree-compile and the runtime, many functions in one module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import iree.runtime as rt
import numpy as np
from mlir import ir
from program import Array, Program

from smartmem_mlir.ir import make_context
from smartmem_mlir.iree.compiler import CompilerOptions, run_iree_compile
from smartmem_mlir.iree.device_target import compile_flags
from smartmem_mlir.iree.lower import emit_iree
from smartmem_mlir.kernels.cpu.lower_groups import ATTRIBUTE
from smartmem_mlir.targets import load_pipeline, load_target
from smartmem_mlir.transforms.registry import run_pipeline


class CompiledPrograms:
    """Programs compiled for the CPU of this machine.

    Args:
        programs: Functions of one module.
        folder: Where files go.
        vectors: f32 lanes of a vector register, and how many registers kernels may use.
        layouts: How layouts are chosen. The solver may find that a tiny program is better off without a kernel of ours;
            a test of the generator asks for `paper`.
    """

    def __init__(
        self, programs: Sequence[Program], folder: Path, vectors: tuple[int, int], layouts: str = "solver"
    ) -> None:
        target = load_target("cpu")
        with make_context(allow_unregistered_dialects=True):
            module = ir.Module.parse("\n".join(program.text() for program in programs))
            module.operation.attributes[ATTRIBUTE] = ir.DenseI64ArrayAttr.get(list(vectors))
            pipeline = load_pipeline("cpu").text()
            assert "smartmem-select-layouts," in pipeline
            run_pipeline(module, pipeline.replace("select-layouts,", f"select-layouts{{layouts={layouts}}},"))
            del module.operation.attributes[ATTRIBUTE]
            self.lowered = str(module)
            """The module as the pipeline left it."""
        source, vmfb = folder / "module.mlir", folder / "module.vmfb"
        source.write_text(emit_iree(self.lowered, target))
        run_iree_compile(source, vmfb, compile_flags(target, None), CompilerOptions(reproducer=folder / "reproducer"))
        config = rt.Config(device=rt.get_device("local-sync"))
        self._module = rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, vmfb.read_bytes()), config)

    def run(self, program: Program) -> list[Array]:
        """The results of one function on its own arguments."""
        arguments = [argument.array.astype(np.float32) for argument in program.arguments]
        results = self._module[program.name](*arguments)
        return [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]

"""Programs through a pipeline, iree-compile and the runtime, many functions in one module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from mlir import ir
from program import Array, Program, Tensor

from smartmem_mlir.ir import make_context
from smartmem_mlir.iree.build import build
from smartmem_mlir.iree.compiler import CompilerOptions
from smartmem_mlir.iree.device_target import executable_target
from smartmem_mlir.iree.lower import emit_iree
from smartmem_mlir.iree.runtime import LoadedModule
from smartmem_mlir.kernels.cpu.lower_groups import ATTRIBUTE as CPU_VECTORS
from smartmem_mlir.kernels.spirv.limits import CooperativeMatrices
from smartmem_mlir.kernels.spirv.lower_groups import ATTRIBUTE as VULKAN_DEVICE
from smartmem_mlir.signature import NUMPY_DTYPES, TensorSpec
from smartmem_mlir.targets import load_pipeline, load_target
from smartmem_mlir.transforms.registry import run_pipeline


class CompiledPrograms:
    """Programs compiled for a device of this machine.

    Args:
        programs: Functions of one module.
        folder: Where files go.
        attributes: Of the module, by name, as MLIR writes them: what kernels are generated for.
        target: Name of the target.
        pipeline: Name of the pipeline.
        device: Where the module runs, as IREE names it.
        layouts: How layouts are chosen. The solver may find that a tiny program is better off without a kernel of ours;
            a test of the generator asks for `paper`.
        storage: Which memory shaders' tensors get.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        folder: Path,
        attributes: dict[str, str],
        layouts: str = "solver",
        target: str = "cpu",
        pipeline: str = "cpu",
        device: str = "local-sync",
        storage: str = "auto",
    ) -> None:
        description = load_target(target)
        self.lowered = lower(programs, attributes, layouts, pipeline, storage)
        """The module as the pipeline left it."""
        source, self._vmfb = folder / "module.mlir", folder / "module.vmfb"
        source.write_text(emit_iree(self.lowered, description))
        options = CompilerOptions(reproducer=folder / "reproducer")
        self.assumptions = build(source, self._vmfb, folder, description, None, options, print).assumptions
        """What the module assumes of its device."""
        self._device, self._first = device, programs[0]

    @cached_property
    def _loaded(self) -> LoadedPrograms:
        return LoadedPrograms(self._vmfb, self._first, self._device)

    def run(self, program: Program) -> list[Array]:
        """The results of one function on its own arguments."""
        return self._loaded.run(program)

    def function(self, name: str) -> str:
        """The text of a function as the pipeline left it."""
        return function_text(self.lowered, name)

    def check(self, program: Program, tolerance: float) -> None:
        """Compares the results of a function with NumPy's, in double precision."""
        for found, expected in zip(self.run(program), program.results, strict=True):
            np.testing.assert_allclose(found, expected.array, rtol=tolerance, atol=2e-5)


def lower(
    programs: Sequence[Program],
    attributes: dict[str, str],
    layouts: str = "solver",
    pipeline: str = "cpu",
    storage: str = "auto",
) -> str:
    """The module that a pipeline makes of programs; see :class:`CompiledPrograms`."""
    with make_context(allow_unregistered_dialects=True):
        module = ir.Module.parse("\n".join(program.text() for program in programs))
        for name, text in attributes.items():
            module.operation.attributes[name] = ir.Attribute.parse(text)
        passes = load_pipeline(pipeline).text()
        assert "smartmem-select-layouts," in passes
        passes = passes.replace("select-layouts,", f"select-layouts{{layouts={layouts}}},")
        run_pipeline(module, passes.replace("groups-to-vulkan,", f"groups-to-vulkan{{storage={storage}}},"))
        for name in attributes:
            del module.operation.attributes[name]
        return str(module)


def function_text(module: str, name: str) -> str:
    """The text of a function of a module."""
    body = re.search(rf"func\.func @{name}\(.*?\n  }}\n", module, re.DOTALL)
    assert body is not None
    return body[0]


class LoadedPrograms:
    """Compiled programs on a device.

    Args:
        vmfb: Functions of one module.
        first: One of them.
        device: Where the module runs, as IREE names it.
    """

    def __init__(self, vmfb: Path, first: Program, device: str) -> None:
        self._module = LoadedModule(vmfb, None, device, *_signature(first), entry=first.name)

    def run(self, program: Program) -> list[Array]:
        """The results of one function on its own arguments."""
        arguments = [argument.array.astype(NUMPY_DTYPES[argument.element]) for argument in program.arguments]
        return list(self._module.with_entry(program.name, *_signature(program))(arguments))


def cpu_vectors(lanes: int, registers: int) -> dict[str, str]:
    """The attribute of a CPU with these vector registers."""
    return {CPU_VECTORS: f"array<i64: {lanes}, {registers}>"}


VECTORS = {"neon": (4, 32), "avx2": (8, 16), "avx512": (16, 32)}
"""Lanes and registers; any machine runs all three, if not at full speed."""


def compile_for_cpu(programs: Sequence[Program], folders: pytest.TempPathFactory, name: str) -> CompiledPrograms:
    """Programs for vector registers of a name, by the paper's rule of layouts."""
    return CompiledPrograms(programs, folders.mktemp(name), cpu_vectors(*VECTORS[name]), "paper")


def vulkan_device(
    lanes: int,
    half: bool = False,
    registers: int = 0,
    invocations: int = 128,
    shared_bytes: int = 16384,
    matrices: CooperativeMatrices | None = None,
) -> dict[str, str]:
    """The attribute of a device with this many lanes, by default within the Android baseline profile.

    With f16 its target is `vulkan-f16`, else `vulkan`.
    """
    target = executable_target(load_target("vulkan-f16" if half else "vulkan")).replace('"', '\\"')
    numbers = f"invocations = {invocations}, shared_bytes = {shared_bytes}, lanes = {lanes}, registers = {registers}"
    numbers += ", workgroups = array<i64: 65535, 65535>"
    if matrices is not None:
        fields = ", ".join(f"{name} = {str(value).lower()}" for name, value in asdict(matrices).items())
        numbers += f", matrices = {{{fields}}}"
    images = f"image_extent = 4096, image_layers = 256, texel_elements = 65536, half = {str(half).lower()}"
    return {VULKAN_DEVICE: f'{{{numbers}, spirv_version = "1.3", executable_target = "{target}", {images}}}'}


def _signature(program: Program) -> tuple[list[TensorSpec], list[TensorSpec]]:
    def specs(tensors: Sequence[Tensor]) -> list[TensorSpec]:
        return [TensorSpec(f"t{i}", tuple(t.shape), t.element) for i, t in enumerate(tensors)]

    return specs(program.arguments), specs(program.results)

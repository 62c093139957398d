"""Small IREE programs out of kernels, and what NumPy says about them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from image_kernels import Kernel

Array = npt.NDArray[Any]

ELEMENT_TYPES = {"rgba32f": "f32", "rgba16f": "f16", "rgba32ui": "i32"}
DTYPES = {"rgba32f": np.float32, "rgba16f": np.float16, "rgba32ui": np.uint32}

_HEADER = """\
#spirv = #hal.executable.target<"vulkan-spirv", "vulkan-spirv-fb", {iree_codegen.target_info = #iree_gpu.target<
  arch = "", features = "spirv:v1.3,cap:Shader", wgp = <compute = fp32|int32, storage = b32, subgroup = none,
  subgroup_size_choices = [32, 32], max_workgroup_sizes = [128, 128, 64], max_thread_count_per_workgroup = 128,
  max_workgroup_memory_bytes = 16384, max_workgroup_counts = [65535, 65535, 65535]>>}>
#device = #hal.device.target<"vulkan", [#spirv]> : !hal.device
"""


@dataclass(frozen=True)
class Step:
    """One dispatch: `result = kernel(arguments)`. All names are SSA values without the percent sign."""

    result: str
    kernel: Kernel
    arguments: tuple[str, ...]
    push_constants: tuple[int, int, int] | None = None
    """Values to pass instead of the kernel's own extents."""


@dataclass(frozen=True)
class Native:
    """An operation that IREE compiles itself, as MLIR."""

    result: str
    text: str
    type: str


@dataclass(frozen=True)
class Function:
    """A function of the program: its arguments with their types, what it does, what it returns."""

    name: str
    inputs: Mapping[str, str]
    steps: Sequence[Step | Native]
    results: Sequence[str] = field(default=("out",))

    def kernels(self) -> list[Kernel]:
        """The hand-written kernels in order."""
        return [step.kernel for step in self.steps if isinstance(step, Step)]


def shape(kernel: Kernel) -> tuple[int, int, int, int]:
    """Logical shape of the kernel's tensors: depth, height, width, 4."""
    return (kernel.depth, kernel.height, kernel.width, 4)


def tensor_type(kernel: Kernel) -> str:
    """The MLIR type of the kernel's tensors."""
    return f"tensor<{'x'.join(map(str, shape(kernel)))}x{ELEMENT_TYPES[kernel.format]}>"


def module_text(functions: Sequence[Function]) -> str:
    """The program as MLIR; kernel `i` of function `f` is the object file `f_i.spv`."""
    body = "\n".join(_function(function) for function in functions)
    return f"{_HEADER}module @m attributes {{hal.device.targets = [#device]}} {{\n{body}\n}}\n"


def _function(function: Function) -> str:
    types = dict(function.inputs)
    lines: list[str] = []
    number = 0
    for step in function.steps:
        if isinstance(step, Native):
            lines.append(step.text)
            types[step.result] = step.type
        else:
            lines += _dispatch(f"{function.name}_{number}", step, types)
            types[step.result] = tensor_type(step.kernel)
            number += 1
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in function.inputs.items())
    returned = ", ".join(types[name] for name in function.results)
    values = ", ".join(f"%{name}" for name in function.results)
    text = "\n  ".join(lines)
    return f"func.func @{function.name}({arguments}) -> ({returned}) {{\n  {text}\n  return {values} : {returned}\n}}"


def _dispatch(name: str, step: Step, types: Mapping[str, str]) -> list[str]:
    kernel = step.kernel
    constants: tuple[int, ...] = ()
    if kernel.extents_in_push_constants:
        constants = step.push_constants or (kernel.width, kernel.height, kernel.depth)
    pushed = [f"%{name}_push{index}" for index in range(len(constants))]
    lines = [f"{value} = arith.constant {number} : i32" for value, number in zip(pushed, constants, strict=True)]
    operands = ", ".join([*pushed, *(f"%{argument}" for argument in step.arguments)])
    operand_types = ", ".join([*("i32" for _ in pushed), *(types[argument] for argument in step.arguments)])
    bindings = ", ".join(
        ["#hal.pipeline.binding<storage_buffer, ReadOnly>"] * len(step.arguments)
        + ["#hal.pipeline.binding<storage_buffer>"]
    )
    grid = [
        f"    %count_{axis} = arith.constant {size} : index"
        for axis, size in zip("xyz", kernel.workgroups, strict=True)
    ]
    return [
        *lines,
        f'%{step.result} = hal.dispatch.extern "main"({operands}) : ({operand_types}) -> {tensor_type(kernel)}',
        "  count(%device: !hal.device) -> (index, index, index) {",
        *grid,
        "    hal.return %count_x, %count_y, %count_z : index, index, index }",
        f"  layout(#hal.pipeline.layout<constants = {len(constants)}, bindings = [{bindings}]>)",
        f'  objects({{ #spirv ordinal(0) = [#hal.executable.object<{{path = "{name}.spv"}}>] }})',
    ]


def compile_program(directory: Path, functions: Sequence[Function]) -> Path:
    """Assembles and validates the kernels and compiles the module; returns its path."""
    directory.mkdir(parents=True, exist_ok=True)
    for function in functions:
        for number, kernel in enumerate(function.kernels()):
            assemble(kernel.assembly(), directory / f"{function.name}_{number}.spv")
    source = directory / "program.mlir"
    source.write_text(module_text(functions))
    return compile_module(source, directory / "program.vmfb")


def compile_module(source: Path, module: Path, *flags: str) -> Path:
    """Runs iree-compile; kernels are looked for beside the source."""
    command = ["iree-compile", "--iree-hal-target-device=vulkan", *flags]
    # IREE aligns tensors to 64 bytes unless told; SwiftShader asks for 256.
    command.append("--iree-stream-resource-min-offset-alignment=256")
    command.append(f"--iree-hal-executable-object-search-path={source.parent}")
    subprocess.run([*command, str(source), "-o", str(module)], check=True)
    return module


def assemble(text: str, path: Path) -> None:
    """Writes SPIR-V assembly as a binary and validates it."""
    source = path.with_suffix(".spvasm")
    source.write_text(text)
    subprocess.run(["spirv-as", "--target-env", "spv1.3", str(source), "-o", str(path)], check=True)
    subprocess.run(["spirv-val", "--target-env", "vulkan1.1", str(path)], check=True)


def evaluate(kernel: Kernel, *inputs: Array) -> Array:
    """What the kernel computes: in f32 (or u32), rounded to the tensor's type at the store."""
    wide = np.uint32 if kernel.format == "rgba32ui" else np.float32
    total = inputs[0].astype(wide)
    for other in inputs[1:]:
        total = total + other.astype(wide)
    if kernel.mirror:
        total = total[::-1, ::-1, ::-1]
    return (total * wide(kernel.scale) + wide(kernel.bias)).astype(DTYPES[kernel.format])


def random_tensor(kernel: Kernel, seed: int = 0) -> Array:
    """An input of the kernel's shape and type."""
    generator = np.random.default_rng(seed)
    if kernel.format == "rgba32ui":
        return generator.integers(0, 2**31, shape(kernel), dtype=np.uint32)
    return generator.uniform(-2, 2, shape(kernel)).astype(DTYPES[kernel.format])

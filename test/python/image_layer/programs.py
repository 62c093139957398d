"""Small IREE programs out of kernels, and what NumPy says about them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from kernels import Kernel

Array = npt.NDArray[np.generic]

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
    push_constants: tuple[int, ...] | None = None
    """Values to pass instead of the kernel's own extents."""


def shape(kernel: Kernel) -> tuple[int, int, int, int]:
    """Logical shape of the kernel's tensors: depth, height, width, 4."""
    return (kernel.depth, kernel.height, kernel.width, 4)


def tensor_type(kernel: Kernel) -> str:
    """The MLIR type of the kernel's tensors."""
    return f"tensor<{'x'.join(map(str, shape(kernel)))}x{ELEMENT_TYPES[kernel.format]}>"


def module_text(
    steps: Sequence[Step],
    inputs: Mapping[str, str],
    results: Sequence[str],
    extra: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """The program as MLIR.

    Args:
        steps: Dispatches in order.
        inputs: Argument names and their types.
        results: Values to return.
        extra: By result name, an operation in MLIR to put before the first step that uses it, with its type.
    """
    types = dict(inputs)
    extra = dict(extra or {})
    lines: list[str] = []
    for number, step in enumerate(steps):
        for argument in step.arguments:
            if argument in extra:
                text, types[argument] = extra.pop(argument)
                lines.append(f"  {text}")
        lines += _dispatch(number, step, types)
        types[step.result] = tensor_type(step.kernel)
    for name, (text, type_) in extra.items():
        lines.append(f"  {text}")
        types[name] = type_
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in inputs.items())
    returned = ", ".join(types[name] for name in results)
    body = "\n".join(lines)
    return (
        f"{_HEADER}module @m attributes {{hal.device.targets = [#device]}} {{\n"
        f"func.func @f({arguments}) -> ({returned}) {{\n{body}\n"
        f"  return {', '.join(f'%{name}' for name in results)} : {returned}\n}}\n}}\n"
    )


def _dispatch(number: int, step: Step, types: Mapping[str, str]) -> list[str]:
    kernel = step.kernel
    constants: tuple[int, ...] = ()
    if kernel.extents_in_push_constants:
        constants = step.push_constants or (kernel.width, kernel.height, kernel.depth)
    names = [f"%push{number}_{index}" for index in range(len(constants))]
    lines = [f"  {name} = arith.constant {value} : i32" for name, value in zip(names, constants, strict=True)]
    operands = ", ".join([*names, *(f"%{argument}" for argument in step.arguments)])
    operand_types = ", ".join([*("i32" for _ in names), *(types[argument] for argument in step.arguments)])
    bindings = ", ".join(
        ["#hal.pipeline.binding<storage_buffer, ReadOnly>"] * len(step.arguments)
        + ["#hal.pipeline.binding<storage_buffer>"]
    )
    grid = "\n".join(f"      %count_{axis} = arith.constant {size} : index" for axis, size in zip("xyz", kernel.workgroups))
    return [
        *lines,
        f'  %{step.result} = hal.dispatch.extern "main"({operands}) : ({operand_types}) -> {tensor_type(kernel)}',
        f"    count(%device: !hal.device) -> (index, index, index) {{\n{grid}",
        "      hal.return %count_x, %count_y, %count_z : index, index, index }",
        f"    layout(#hal.pipeline.layout<constants = {len(constants)}, bindings = [{bindings}]>)",
        f'    objects({{ #spirv ordinal(0) = [#hal.executable.object<{{path = "{_object_name(number)}"}}>] }})',
    ]


def _object_name(number: int) -> str:
    return f"kernel{number}.spv"


def compile_program(
    directory: Path,
    steps: Sequence[Step],
    inputs: Mapping[str, str],
    results: Sequence[str],
    extra: Mapping[str, tuple[str, str]] | None = None,
) -> Path:
    """Assembles and validates the kernels and compiles the module; returns its path."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, step in enumerate(steps):
        assemble(step.kernel.assembly(), directory / _object_name(number))
    source = directory / "program.mlir"
    source.write_text(module_text(steps, inputs, results, extra))
    module = directory / "program.vmfb"
    subprocess.run(
        [
            "iree-compile",
            "--iree-hal-target-device=vulkan",
            f"--iree-hal-executable-object-search-path={directory}",
            str(source),
            "-o",
            str(module),
        ],
        check=True,
    )
    return module


def assemble(text: str, path: Path) -> None:
    """Writes SPIR-V assembly as a binary and validates it."""
    source = path.with_suffix(".spvasm")
    source.write_text(text)
    subprocess.run(["spirv-as", "--target-env", "spv1.3", str(source), "-o", str(path)], check=True)
    subprocess.run(["spirv-val", "--target-env", "vulkan1.1", str(path)], check=True)


def evaluate(kernel: Kernel, inputs: Sequence[Array]) -> Array:
    """What the kernel computes, in f32 (or u32) and rounded to the tensor's type at the store."""
    wide = np.uint32 if kernel.format == "rgba32ui" else np.float32
    total = inputs[0].astype(wide)
    for other in inputs[1:]:
        total = total + other.astype(wide)
    if kernel.mirror:
        total = total[::-1, ::-1, ::-1]
    return (total * wide(kernel.scale) + wide(kernel.bias)).astype(DTYPES[kernel.format])


def random_tensor(kernel: Kernel, seed: int = 0) -> Array:
    """An input of the kernel's shape and type, small numbers so that a chain stays exact in its mantissa's range."""
    generator = np.random.default_rng(seed)
    if kernel.format == "rgba32ui":
        return generator.integers(0, 2**31, shape(kernel), dtype=np.uint32)
    return generator.uniform(-2, 2, shape(kernel)).astype(DTYPES[kernel.format])

"""lower-groups-to-cpu: groups become kernels of ours inside IREE's executables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mlir import ir

from smartmem_mlir.kernels.cpu.kernel import Kernel
from smartmem_mlir.kernels.cpu.launches import form_launches
from smartmem_mlir.kernels.cpu.lower_attention import attention_kernel
from smartmem_mlir.kernels.cpu.lower_contraction import contraction_kernel, padded_contraction_kernel
from smartmem_mlir.kernels.cpu.lower_linear_attention import linear_attention_kernel
from smartmem_mlir.kernels.cpu.lower_rows import row_kernel
from smartmem_mlir.kernels.cpu.lower_winograd import winograd_kernel
from smartmem_mlir.kernels.cpu.plan import CpuVectors
from smartmem_mlir.kernels.cpu.run_launch import LaunchWriter
from smartmem_mlir.kernels.fates import tell_views
from smartmem_mlir.kernels.groups import (
    GROUP,
    computes_halves,
    dissolve,
    read_attention,
    read_contraction,
    read_linear_attention,
    read_map,
    read_rows,
)
from smartmem_mlir.transforms.contraction_group import ContractionGroup
from smartmem_mlir.transforms.form_groups import form_contraction_groups
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.map_group import erase_copies
from smartmem_mlir.transforms.pass_base import Pass, option

ATTRIBUTE = "smartmem.cpu_vectors"
"""Module attribute, [f32 lanes of a vector register, number of registers]: what the target's CPU has."""


@dataclass(frozen=True)
class Generator:
    """What makes kernels of one kind of group.

    Args:
        read: Reads a `smartmem.group`; None when it is of another kind.
        plan: The kernel of what was read; None when there is none for it.
        regroups: Whether the contractions of a group without a kernel get groups of their own.
    """

    read: Callable[[ir.Operation], Any]
    plan: Callable[[ir.Operation, Any, CpuVectors], Kernel | None]
    regroups: bool = False


GENERATORS = (
    Generator(read_attention, attention_kernel, regroups=True),
    Generator(read_linear_attention, linear_attention_kernel, regroups=True),
    Generator(read_rows, row_kernel),
    Generator(read_contraction, contraction_kernel),
    Generator(read_map, row_kernel),
)
"""In this order: a group is of the first kind that it can be read as."""


def lower_groups(root: ir.Operation, cpu: CpuVectors, filtering: bool = False) -> int:
    """Turns every group that a generator takes into an executable and a dispatch; the others are dissolved.

    Args:
        root: The module.
        cpu: What its kernels are to run on.
        filtering: Whether 3x3 convolutions are computed by minimal filtering where that is faster.

    Returns:
        How many groups became kernels.
    """
    planned: dict[ir.Value, Kernel] = {}
    for generator in GENERATORS:
        dissolved = 0
        for op in _groups(root, planned):
            group = generator.read(op)
            if group is None:
                continue
            kernel = None if computes_halves(op) else generator.plan(op, group, cpu)
            if kernel is None:
                _dissolve(op)
                dissolved += 1
                continue
            if isinstance(group, ContractionGroup):
                filtered = winograd_kernel(op, group, cpu, kernel) if filtering else None
                kernel = filtered or padded_contraction_kernel(op, group, cpu) or kernel
            planned[op.results[0]] = kernel
        if dissolved and generator.regroups:
            form_contraction_groups(root)
    for op in _groups(root, planned):
        _dissolve(op)
    launches = form_launches(list(planned.values()), block_operations(root))
    kept = [launch for launch in launches if len(launch.kernels) > 1 or launch.kernels[0].alone]
    for launch in launches:
        for kernel in launch.kernels:
            if launch in kept:
                kernel.claim()
                tell_views(kernel.op, kernel.staged)
            else:
                _dissolve(kernel.op)
    writer = LaunchWriter(root.regions[0].blocks[0])
    for launch in kept:
        writer.write(launch)
    return sum(len(launch.kernels) for launch in kept)


def _dissolve(op: ir.Operation) -> None:
    erase_copies(op)
    dissolve(op)


def _groups(root: ir.Operation, planned: dict[ir.Value, Kernel]) -> Sequence[ir.Operation]:
    """Groups that have no kernel yet."""
    return [op for op in block_operations(root) if op.name == GROUP and op.results[0] not in planned]


@dataclass(frozen=True)
class LowerGroupsToCpu(Pass):
    """Generate a kernel for each group of f32 values: attention, or a contraction and what follows it.

    Scores and weights of attention stay on the stack, block by block of keys when there are many. Parameters are
    stored panel by panel, as a view that is computed when the model is compiled. Groups that read the same tensor run
    side by side in one launch, small ones one after the other, and those of which each row needs only that row of the
    others block of rows by block of rows. Groups that no generator takes are dissolved, and IREE makes their kernels.
    """

    argument: ClassVar[str] = "smartmem-lower-groups-to-cpu"
    dependent_dialects: ClassVar[tuple[str, ...]] = (
        *("smartmem", "affine", "arith", "func", "math", "memref", "scf", "vector"),
    )
    example: ClassVar[str] = "matmul.mlir"

    lanes: int | None = option(None, "f32 elements of a vector register; by default what the module says, or 8")
    registers: int | None = option(None, "vector registers; by default what the module says, or 16")
    filtering: bool = option(
        True, "compute 3x3 convolutions by Winograd's minimal filtering, F(4x4, 3x3), where that is faster"
    )

    def run(self, op: ir.Operation) -> None:
        """Transforms the module."""
        lanes, registers = 8, 16
        if ATTRIBUTE in op.attributes:
            lanes, registers = ir.DenseI64ArrayAttr(op.attributes[ATTRIBUTE])
        lower_groups(op, CpuVectors(self.lanes or lanes, self.registers or registers), self.filtering)

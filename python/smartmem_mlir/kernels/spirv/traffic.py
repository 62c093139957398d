"""How many bytes a shader fetches of a tensor, and writes: what the choice of a memory reckons with.

Every workgroup fetches once what its threads read together; what several workgroups read is fetched by each.
"""

from __future__ import annotations

from math import ceil, prod

from mlir import ir

from smartmem_mlir.kernels.addresses import PANEL, ROW, SplitAddress, split_address
from smartmem_mlir.kernels.groups import is_f16
from smartmem_mlir.kernels.spirv.plan import Operand, ShaderPlan
from smartmem_mlir.kernels.spirv.row_plan import RowShaderPlan
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.contraction_group import Read


def element_bytes(value: ir.Value) -> int:
    """Size of an element of a tensor that shaders access."""
    return 2 if is_f16(value.type) else 4


def factor_bytes(plan: ShaderPlan, operand: Operand) -> int:
    """Of a factor of a contraction, or of one part of it."""
    tiling = plan.tiling
    across, down = plan.workgroups
    terms = prod(tiling.reduction_extents)
    if operand is plan.rhs:
        elements = tiling.num_panels * WIDTH * terms * down
    elif PANEL in operand.address.outer.dims:
        # Of a batch each panel has its own; workgroups beside each other share it where the batch has several panels.
        ranges = tiling.panels_per_lane_range
        elements = tiling.num_rows * terms * (tiling.num_panels // ranges) * ceil(ranges / plan.columns)
    else:
        elements = tiling.num_rows * terms * across
    return elements * element_bytes(operand.value) // (1 if operand is plan.rhs else len(plan.lhs))


def epilogue_bytes(plan: ShaderPlan, read: Read) -> int:
    """Of what a contraction reads after its sum, or writes."""
    address = split_address(read.address, plan.tiling)
    assert address is not None, "the plan has checked every address"
    across, down = plan.workgroups
    lanes = plan.tiling.num_panels * WIDTH if address.lanes or PANEL in address.outer.dims else across
    rows = plan.tiling.num_rows if ROW in address.outer.dims else down
    return lanes * rows * element_bytes(read.value)


def scale_bytes(plan: ShaderPlan, read: Read) -> int:
    """Of what a factor is multiplied by."""
    return prod(plan.workgroups) * prod(plan.tiling.reduction_extents) * element_bytes(read.value)


def row_bytes(plan: RowShaderPlan, read: Read, address: SplitAddress) -> int:
    """Of what a computation over rows reads, or writes."""
    passes = 1 if plan.is_held or read is plan.group.output else len(plan.phases) + 1
    rows = plan.tiling.num_rows if ROW in address.outer.dims else prod(plan.workgroups)
    columns = plan.vectors * WIDTH if address.lanes or address.inner.dims else 1
    return rows * columns * passes * element_bytes(read.value)

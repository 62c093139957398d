"""Groups as shaders: what each reads and writes, which of it can be images, and the code for a choice of memories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.kernels.groups import is_argument, is_f16, is_f32, parameter, read_rows, reads_after_sum
from smartmem_mlir.kernels.spirv.bodies import can_evaluate
from smartmem_mlir.kernels.spirv.choice import plan_contraction
from smartmem_mlir.kernels.spirv.contraction import ContractionShader
from smartmem_mlir.kernels.spirv.cooperative import CooperativeShader
from smartmem_mlir.kernels.spirv.cooperative_plan import MatrixPlan
from smartmem_mlir.kernels.spirv.limits import GpuLimits
from smartmem_mlir.kernels.spirv.placements import ImageShape
from smartmem_mlir.kernels.spirv.plan import (
    Direction,
    Operand,
    ShaderPlan,
    direction_of,
)
from smartmem_mlir.kernels.spirv.routes import find_route, fits_image, fits_packed
from smartmem_mlir.kernels.spirv.row_plan import RowShaderPlan, plan_rows
from smartmem_mlir.kernels.spirv.rows import RowShader
from smartmem_mlir.kernels.spirv.shader import Thread
from smartmem_mlir.kernels.spirv.storage import Binding
from smartmem_mlir.kernels.spirv.traffic import epilogue_bytes, factor_bytes, row_bytes, scale_bytes
from smartmem_mlir.kernels.spirv.vectors import WIDTH
from smartmem_mlir.transforms.contraction_group import Read, is_bordered, read_contraction_group
from smartmem_mlir.transforms.contraction_growth import is_contraction
from smartmem_mlir.transforms.structured import is_structured
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant

Emit = Callable[[Thread], None]


@dataclass(frozen=True)
class Use:
    """One way in which a kernel accesses a tensor.

    Args:
        value: The tensor, inside the group.
        direction: What a vector of it is, NONE where it is accessed by elements.
        fits: Whether it can be accessed so in an image.
        bytes: What all workgroups fetch or write; see `traffic`.
    """

    value: ir.Value
    direction: Direction
    fits: Callable[[ImageShape], bool]
    bytes: int


@dataclass(frozen=True)
class Kernel:
    """A group as a shader.

    Args:
        op: The group.
        plan: How it runs.
        stem: Its name, perhaps not free.
        arguments: What it reads, as arguments of the group.
        output: What it writes, inside the group.
        uses: Every access.
        emit: Writes the body for a choice of memories.
    """

    op: ir.Operation
    plan: ShaderPlan | RowShaderPlan
    stem: str
    arguments: tuple[ir.Value, ...]
    output: ir.Value
    uses: tuple[Use, ...]
    emit: Callable[[Mapping[ir.Value, Binding]], Emit]

    @property
    def packed(self) -> ir.Value | None:
        """The argument that is a weight and stored as :func:`pack` says."""
        return self.plan.group.rhs.value if isinstance(self.plan, ShaderPlan) and self.plan.packed else None

    @property
    def sums_windows(self) -> bool:
        """Whether it sums over windows of several channels, as convolutions do."""
        return isinstance(self.plan, ShaderPlan) and sum(n > 1 for n in self.plan.tiling.reduction_extents) > 2

    def operand(self, argument: ir.Value) -> ir.Value:
        """What the group is given for an argument."""
        return self.op.operands[ir.BlockArgument(argument).arg_number]

    def is_whole(self, value: ir.Value) -> bool:
        """Whether every access of a tensor is of a whole vector."""
        return all(use.direction is not Direction.NONE for use in self.uses if use.value == value)

    def is_copied(self, value: ir.Value) -> bool:
        """Whether a tensor is read by blocks of f16, and only so."""
        return isinstance(self.plan, MatrixPlan) and value in (self.plan.lhs[0].value, self.plan.rhs.value)

    def fits(self, value: ir.Value, image: ImageShape) -> bool:
        """Whether a tensor can be an image."""
        return self.is_whole(value) and all(use.fits(image) for use in self.uses if use.value == value)

    def bytes(self, value: ir.Value) -> int:
        """What all workgroups fetch of a tensor, or write."""
        return sum(use.bytes for use in self.uses if use.value == value)


def contraction_kernel(op: ir.Operation, limits: GpuLimits) -> Kernel | None:
    """A group that is a contraction and what follows it; None for others, and for those that no plan fits."""
    members = [inner.operation for inner in op.regions[0].blocks[0].operations]
    kept = [inner for inner in members if is_structured(inner) or is_bordered(inner)]
    # Before the contraction stands what scales a factor of it.
    first = next((i for i, inner in enumerate(kept) if is_contraction(inner)), None)
    group = None if first is None else read_contraction_group(kept[first:])
    if group is None or not _has_types(op, limits) or not all(can_evaluate(step.body) for step in group.steps):
        return None
    plan = plan_contraction(group, limits, constant_rhs=parameter(op, group.rhs) is not None)
    if plan is None:
        return None
    group = plan.group
    scale = () if group.scale is None else (group.scale.read,)
    reads = (*group.lhs.reads, group.rhs, *scale, *reads_after_sum(group))
    uses = [
        *(_factor_use(plan, factor) for factor in (*plan.lhs, plan.rhs) if splat_constant(factor.value) is None),
        *(Use(read.value, Direction.NONE, _never, scale_bytes(plan, read)) for read in scale),
        *(_lane_use(plan, read) for read in reads_after_sum(group)),
        _lane_use(plan, group.output, _is_whole(group.border)),
    ]
    return Kernel(
        op,
        plan,
        _contraction_stem(plan),
        tuple(dict.fromkeys(read.value for read in reads if is_argument(read.value))),
        group.output.value,
        tuple(uses),
        lambda bindings: _shader(plan, bindings).emit,
    )


def _shader(plan: ShaderPlan, bindings: Mapping[ir.Value, Binding]) -> ContractionShader:
    return CooperativeShader(plan, bindings) if isinstance(plan, MatrixPlan) else ContractionShader(plan, bindings)


def row_kernel(op: ir.Operation, limits: GpuLimits) -> Kernel | None:
    """A group that is a computation over rows; None for others, and for those that no plan fits."""
    group = read_rows(op)
    plan = plan_rows(group, limits) if group is not None and _has_types(op, limits) else None
    if plan is None:
        return None
    output = plan.group.output
    uses = [_row_use(plan, read) for read in plan.reads]
    uses.append(_row_use(plan, output, _is_whole(plan.group.border)))
    return Kernel(
        op,
        plan,
        f"rows_{plan.tiling.num_rows}x{plan.tiling.panel_width * prod(plan.tiling.reduction_extents)}",
        tuple(dict.fromkeys(read.value for read in plan.reads if is_argument(read.value))),
        output.value,
        tuple(uses),
        lambda bindings: RowShader(plan, bindings).emit,
    )


def _has_types(op: ir.Operation, limits: GpuLimits) -> bool:
    """Whether everything that is read and written has elements that a shader can load and store."""
    values = (*op.operands, *op.results)
    return all(is_f32(value.type) or (limits.half and is_f16(value.type)) for value in values)


def _never(image: ImageShape) -> bool:
    return False


def _factor_use(plan: ShaderPlan, operand: Operand) -> Use:
    direction = operand.direction
    if isinstance(plan, MatrixPlan):
        # Blocks and matrices are loaded from buffers.
        return Use(operand.value, Direction.NONE, _never, factor_bytes(plan, operand))
    if direction is Direction.TERMS and plan.step != WIDTH:
        direction = Direction.NONE
    if operand is plan.rhs and plan.packed:
        return Use(operand.value, direction, lambda image: fits_packed(plan.tiling, image), factor_bytes(plan, operand))
    return Use(operand.value, direction, _fits(plan, operand.read, direction), factor_bytes(plan, operand))


def _lane_use(plan: ShaderPlan, read: Read, whole: bool = True) -> Use:
    found = find_route(read.access, shape_of(read.value), plan.tiling, None)
    assert found is not None, "the plan has checked every address"
    direction = direction_of(read.value, found[0], plan.tiling)
    return _vector_use(plan, read, direction, whole, epilogue_bytes(plan, read))


def _row_use(plan: RowShaderPlan, read: Read, whole: bool = True) -> Use:
    address = plan.output if read is plan.group.output else plan.reads[read]
    direction = direction_of(read.value, address, plan.tiling)
    over_tiling = Read(read.value, plan.access(read))
    return _vector_use(plan, over_tiling, direction, whole, row_bytes(plan, read, address))


def _vector_use(plan: ShaderPlan | RowShaderPlan, read: Read, found: Direction, whole: bool, bytes: int) -> Use:
    """Of vectors along the lanes, or of elements."""
    direction = Direction.LANES if found is Direction.LANES and whole else Direction.NONE
    return Use(read.value, direction, _fits(plan, read, direction), bytes)


def _fits(plan: ShaderPlan | RowShaderPlan, read: Read, direction: Direction) -> Callable[[ImageShape], bool]:
    def fits(image: ImageShape) -> bool:
        found = find_route(read.access, shape_of(read.value), plan.tiling, image)
        return found is not None and fits_image(found, plan.tiling, direction, image)

    return fits


def _is_whole(border: Sequence[tuple[Box, float]]) -> bool:
    """Whether a border is of whole vectors."""
    return all(box.lo[-1] % WIDTH == 0 and box.extents[-1] % WIDTH == 0 for box, _ in border)


def _contraction_stem(plan: ShaderPlan) -> str:
    tiling = plan.tiling
    reduction = "x".join(map(str, tiling.reduction_extents))
    lanes = prod(tiling.extents[d] for d in (*tiling.panels, tiling.lane))
    return f"contraction_{tiling.num_rows}x{lanes}x{reduction}"

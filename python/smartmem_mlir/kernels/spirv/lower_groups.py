"""lower-groups-to-vulkan: groups become shaders of ours inside IREE's executables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import ZERO, Expr, dim
from smartmem_mlir.index_maps.view import Fill, Piece, View
from smartmem_mlir.kernels.addresses import split_address
from smartmem_mlir.kernels.cpu.lower_attention import read_attention
from smartmem_mlir.kernels.cpu.lower_rows import read_rows
from smartmem_mlir.kernels.executable import dispatch
from smartmem_mlir.kernels.fates import tell_views
from smartmem_mlir.kernels.groups import (
    CONSTANTS,
    GROUP,
    dissolve,
    is_argument,
    is_f32,
    parameter,
    symbols,
    unique,
    without_operands,
)
from smartmem_mlir.kernels.spirv.bodies import can_evaluate
from smartmem_mlir.kernels.spirv.contraction import ContractionShader
from smartmem_mlir.kernels.spirv.executable import DEFAULT_TARGET, add_shader
from smartmem_mlir.kernels.spirv.plan import (
    WIDTH,
    Direction,
    GpuLimits,
    Operand,
    ShaderPlan,
    direction_of,
    plan_contraction,
    reads_after_sum,
)
from smartmem_mlir.kernels.spirv.row_plan import RowShaderPlan, plan_rows
from smartmem_mlir.kernels.spirv.rows import RowShader
from smartmem_mlir.kernels.spirv.shader import Interface, Thread, assemble
from smartmem_mlir.kernels.spirv.storage import Binding, Elements, Vectors
from smartmem_mlir.transforms.contraction_group import Read, is_bordered, read_contraction_group
from smartmem_mlir.transforms.contraction_growth import is_contraction
from smartmem_mlir.transforms.form_groups import form_contraction_groups, form_row_groups
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.structured import is_structured
from smartmem_mlir.transforms.view_ops import shape_of, write_view

ATTRIBUTE = "smartmem.vulkan_device"
"""Module attribute, a dictionary: `invocations`, `shared_bytes`, `workgroups` (x, y), `lanes`, `spirv_version` and
`executable_target`, IREE's attribute as text."""


@dataclass(frozen=True)
class Device:
    """What shaders are made for.

    Args:
        limits: Of the device.
        spirv_version: That shaders may be in.
        executable_target: IREE's attribute as text.
    """

    limits: GpuLimits
    spirv_version: str
    executable_target: str


DEFAULT_DEVICE = Device(GpuLimits(128, 16384, (65535, 65535), 1024), "1.3", DEFAULT_TARGET)
"""The Android baseline profile of 2022, on a GPU of middle size."""


@dataclass(frozen=True)
class _Kernel:
    """A group as a shader.

    Args:
        plan: How it runs.
        stem: Its name, perhaps not free.
        arguments: What it reads, as arguments of the group.
        operands: What is read for each.
        bindings: The memory of the arguments and, last, of the result.
        emit: Writes the body.
    """

    plan: ShaderPlan | RowShaderPlan
    stem: str
    arguments: tuple[ir.Value, ...]
    operands: tuple[ir.Value, ...]
    bindings: dict[ir.Value, Binding]
    emit: Callable[[Thread], None]


def lower_groups(root: ir.Operation, device: Device) -> int:
    """Turns every group that a generator takes into an executable and a dispatch; the others are dissolved.

    Returns:
        How many groups became kernels.
    """
    module = root.regions[0].blocks[0]
    names: dict[str, str] = {}
    taken = symbols(module)
    lowered = 0
    _dissolve_attention(root)
    for op in block_operations(root):
        if op.name != GROUP:
            continue
        key = f"{_constants(op)} {without_operands(op)}"
        with ir.InsertionPoint(op), op.location:
            kernel = _contraction(op, device.limits) or _rows(op, device.limits)
        if kernel is None:
            dissolve(op)
            continue
        tell_views(op)
        with ir.InsertionPoint(op), op.location:
            if key not in names:
                names[key] = unique(kernel.stem, taken)
                _add(module, names[key], kernel, device)
            result = dispatch(names[key], kernel.operands, op.results[0].type)
        op.results[0].replace_all_uses_with(result)
        op.erase()
        lowered += 1
    return lowered


def _dissolve_attention(root: ir.Operation) -> None:
    """Its contractions and its softmax get groups of their own."""
    found = [op for op in block_operations(root) if op.name == GROUP and read_attention(op) is not None]
    for op in found:
        dissolve(op)
    if found:
        form_contraction_groups(root)
        form_row_groups(root, borders=True)


def _add(module: ir.Block, name: str, kernel: _Kernel, device: Device) -> None:
    plan = kernel.plan
    bindings = tuple(kernel.bindings.values())
    interface = Interface(name, bindings, plan.invocations, plan.shared_vectors, device.spirv_version)
    binary = assemble(interface, kernel.emit)
    add_shader(module, name, binary, len(kernel.arguments), plan.workgroups, device.executable_target)


def _constants(op: ir.Operation) -> str:
    """Which operands are known at compile time: kernels may want those in an order of their own."""
    owners = [operand.owner for operand in op.operands]
    known = [not isinstance(owner, ir.Block) and owner.operation.name in CONSTANTS for owner in owners]
    return "".join("c" if is_known else "v" for is_known in known)


def _operands(op: ir.Operation, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    return [op.operands[ir.BlockArgument(argument).arg_number] for argument in arguments]


def _contraction(op: ir.Operation, limits: GpuLimits) -> _Kernel | None:
    """A group that is a contraction and what follows it."""
    members = [inner.operation for inner in op.regions[0].blocks[0].operations]
    kept = [inner for inner in members if is_structured(inner) or is_bordered(inner)]
    # Before the contraction stands what scales a factor of it.
    first = next((i for i, inner in enumerate(kept) if is_contraction(inner)), None)
    group = None if first is None else read_contraction_group(kept[first:])
    if group is None or not all(is_f32(value.type) for value in (*op.operands, *op.results)):
        return None
    if not all(can_evaluate(step.body) for step in group.steps):
        return None
    plan = plan_contraction(group, limits, constant_rhs=parameter(op, group.rhs) is not None)
    if plan is None:
        return None
    group = plan.group
    scale = () if group.scale is None else (group.scale.read,)
    reads = (*group.lhs.reads, group.rhs, *scale, *reads_after_sum(group))
    arguments = tuple(dict.fromkeys(read.value for read in reads if is_argument(read.value)))
    operands = _operands(op, arguments)
    if plan.packed:
        rhs = arguments.index(group.rhs.value)
        operands[rhs] = pack(plan, operands[rhs])
    bindings = bind(plan, arguments)
    return _Kernel(plan, _stem(plan), arguments, tuple(operands), bindings, ContractionShader(plan, bindings).emit)


def _rows(op: ir.Operation, limits: GpuLimits) -> _Kernel | None:
    """A group that is a computation over rows."""
    group = read_rows(op)
    if group is None or not all(is_f32(value.type) for value in (*op.operands, *op.results)):
        return None
    plan = plan_rows(group, limits)
    if plan is None:
        return None
    arguments = tuple(dict.fromkeys(read.value for read in plan.reads if is_argument(read.value)))
    bindings = bind_rows(plan, arguments)
    stem = f"rows_{plan.tiling.num_rows}x{plan.tiling.panel_width * prod(plan.tiling.reduction_extents)}"
    operands = tuple(_operands(op, arguments))
    return _Kernel(plan, stem, arguments, operands, bindings, RowShader(plan, bindings).emit)


def bind_rows(plan: RowShaderPlan, arguments: Sequence[ir.Value]) -> dict[ir.Value, Binding]:
    """As :func:`bind`, for a kernel over rows."""
    by_vectors: dict[ir.Value, bool] = {}
    output = plan.group.output
    for read, address in (*plan.reads.items(), (output, plan.output)):
        whole = direction_of(read.value, address, plan.tiling) is Direction.LANES
        by_vectors[read.value] = by_vectors.get(read.value, True) and whole
    by_vectors[output.value] = by_vectors[output.value] and _is_whole(plan.group.border)
    return _bindings([*arguments, output.value], by_vectors, output.value)


def _bindings(
    values: Sequence[ir.Value], by_vectors: Mapping[ir.Value, bool], output: ir.Value
) -> dict[ir.Value, Binding]:
    """One for each value, in order."""
    kinds: list[type[Binding]] = [Vectors if by_vectors[value] else Elements for value in values]
    return {
        value: kind(f"tensor_{number}", writable=value == output)
        for number, (value, kind) in enumerate(zip(values, kinds, strict=True))
    }


def bind(plan: ShaderPlan, arguments: Sequence[ir.Value]) -> dict[ir.Value, Binding]:
    """The memory of what a kernel reads and, last, of what it writes: vectors where every access is of a whole one."""
    group = plan.group
    by_vectors: dict[ir.Value, bool] = {}

    def use(value: ir.Value, whole: bool) -> None:
        by_vectors[value] = by_vectors.get(value, True) and whole

    for operand in (*plan.lhs, plan.rhs):
        use(operand.value, _loads_vectors(operand, plan))
    if group.scale is not None:
        use(group.scale.read.value, False)
    for read in reads_after_sum(group):
        use(read.value, _is_vector(read, plan))
    use(group.output.value, _is_vector(group.output, plan) and _is_whole(group.border))
    return _bindings([*arguments, group.output.value], by_vectors, group.output.value)


def _loads_vectors(operand: Operand, plan: ShaderPlan) -> bool:
    if operand.direction is Direction.TERMS:
        return plan.step == WIDTH
    return operand.direction is Direction.LANES


def _is_vector(read: Read, plan: ShaderPlan) -> bool:
    address = split_address(read.address, plan.tiling)
    assert address is not None, "the plan has checked every address"
    return direction_of(read.value, address, plan.tiling) is Direction.LANES


def _is_whole(border: Sequence[tuple[Box, float]]) -> bool:
    """Whether a border is of whole vectors."""
    return all(box.lo[-1] % WIDTH == 0 and box.extents[-1] % WIDTH == 0 for box, _ in border)


def pack(plan: ShaderPlan, weight: ir.Value) -> ir.Value:
    """A weight as [outer panels, reductions, lanes] with lanes filled up to whole vectors, as a view."""
    tiling, group = plan.tiling, plan.group
    outer = [tiling.extents[d] for d in tiling.panels]
    extent = tiling.extents[tiling.lane]
    shape = (*outer, *tiling.reduction_extents, -(-extent // WIDTH) * WIDTH)
    where: list[Expr] = [ZERO] * len(tiling.extents)
    for i, d in enumerate((*tiling.panels, *tiling.reductions, tiling.lane)):
        where[d] = dim(i)
    exprs = tuple(expr.substitute(where) for expr in group.rhs.access)
    whole = Box.of(shape)
    pieces = [Piece(whole.with_axis(len(shape) - 1, 0, extent), 0, exprs)]
    if extent < shape[-1]:
        pieces.append(Piece(whole.with_axis(len(shape) - 1, extent, shape[-1]), Fill(0.0), ()))
    return write_view(View.of(shape, [shape_of(weight)], pieces), [weight], weight.type.element_type)


def _stem(plan: ShaderPlan) -> str:
    tiling = plan.tiling
    reduction = "x".join(map(str, tiling.reduction_extents))
    lanes = prod(tiling.extents[d] for d in (*tiling.panels, tiling.lane))
    return f"contraction_{tiling.num_rows}x{lanes}x{reduction}"


@dataclass(frozen=True)
class LowerGroupsToVulkan(Pass):
    """Generate a shader for each group of f32 values that is a contraction and what follows it.

    Threads accumulate rows by vectors of four lanes in registers, and divide long sums of small results among them.
    Parameters are stored in whole vectors, as a view that is computed when the model is compiled. Groups that no
    generator takes are dissolved, and IREE makes their kernels.
    """

    argument: ClassVar[str] = "smartmem-lower-groups-to-vulkan"
    dependent_dialects: ClassVar[tuple[str, ...]] = (
        *("smartmem", "affine", "arith", "func", "math", "scf", "spirv", "vector"),
    )
    example: ClassVar[str] = "matmul.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms the module."""
        lower_groups(op, read_device(op))


def read_device(op: ir.Operation) -> Device:
    """The device that a module is compiled for, from its attribute."""
    if ATTRIBUTE not in op.attributes:
        return DEFAULT_DEVICE
    attribute = ir.DictAttr(op.attributes[ATTRIBUTE])
    numbers: Mapping[str, int] = {
        name: ir.IntegerAttr(attribute[name]).value for name in ("invocations", "shared_bytes", "lanes")
    }
    x, y = ir.DenseI64ArrayAttr(attribute["workgroups"])
    return Device(
        GpuLimits(numbers["invocations"], numbers["shared_bytes"], (x, y), numbers["lanes"]),
        ir.StringAttr(attribute["spirv_version"]).value,
        ir.StringAttr(attribute["executable_target"]).value,
    )

"""lower-groups-to-cpu: groups become kernels of ours inside IREE's executables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import ZERO, Expr, dim
from smartmem_mlir.index_maps.view import Fill, Piece, View
from smartmem_mlir.kernels.cpu.attention_plan import plan_attention
from smartmem_mlir.kernels.cpu.emit import ContractionEmitter
from smartmem_mlir.kernels.cpu.lower_attention import attention_stem, lower_attention, read_attention
from smartmem_mlir.kernels.cpu.lower_rows import lower_rows, read_rows, row_stem
from smartmem_mlir.kernels.cpu.plan import CpuVectors, KernelPlan, Storage, plan_contraction, reads_after_sum
from smartmem_mlir.kernels.cpu.row_plan import plan_rows
from smartmem_mlir.kernels.executable import add_executable, dispatch
from smartmem_mlir.kernels.fates import tell_views
from smartmem_mlir.transforms.contraction_group import Read, is_bordered, read_contraction_group
from smartmem_mlir.transforms.contraction_growth import is_contraction
from smartmem_mlir.transforms.form_groups import form_contraction_groups
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.outline import clone_into
from smartmem_mlir.transforms.pass_base import Pass, option
from smartmem_mlir.transforms.structured import is_structured
from smartmem_mlir.transforms.view_ops import shape_of, write_view

GROUP = "smartmem.group"
CONSTANTS = ("smartmem.parameter", "arith.constant")
"""What computes a value that is known at compile time."""
ATTRIBUTE = "smartmem.cpu_vectors"
"""Module attribute, [f32 lanes of a vector register, number of registers]: what the target's CPU has."""


def lower_groups(root: ir.Operation, cpu: CpuVectors) -> int:
    """Turns every group that a generator takes into an executable and a dispatch; the others are dissolved.

    Returns:
        How many groups became kernels.
    """
    module = root.regions[0].blocks[0]
    names: dict[str, str] = {}
    taken = _symbols(module)
    lowered = _lower_attention_groups(root, cpu, module, names, taken)
    lowered += _lower_row_groups(root, cpu, module, names, taken)
    for op in block_operations(root):
        if op.name != GROUP:
            continue
        plan = _plan(op, cpu)
        if plan is None:
            _dissolve(op)
            continue
        tell_views(op)
        _lower(op, plan, module, names, taken)
        lowered += 1
    return lowered


def _lower_attention_groups(
    root: ir.Operation, cpu: CpuVectors, module: ir.Block, names: dict[str, str], taken: set[str]
) -> int:
    """Lowers attention; the contractions of groups that the generator does not take get groups of their own."""
    lowered = dissolved = 0
    for op in [op for op in block_operations(root) if op.name == GROUP]:
        group = read_attention(op)
        if group is None:
            continue
        is_f32 = all(_is_f32(value.type) for value in (*op.operands, *op.results))
        plan = plan_attention(group, cpu) if is_f32 else None
        if plan is None:
            _dissolve(op)
            dissolved += 1
            continue
        key = _without_operands(op)
        is_new = key not in names
        if is_new:
            names[key] = _unique(attention_stem(plan), taken)
        tell_views(op)
        lower_attention(op, plan, module, names[key], is_new)
        lowered += 1
    if dissolved:
        form_contraction_groups(root)
    return lowered


def _lower_row_groups(
    root: ir.Operation, cpu: CpuVectors, module: ir.Block, names: dict[str, str], taken: set[str]
) -> int:
    """Lowers normalisations and softmaxes; what the generator does not take is dissolved."""
    lowered = 0
    for op in [op for op in block_operations(root) if op.name == GROUP]:
        group = read_rows(op)
        if group is None:
            continue
        plan = plan_rows(group, cpu)
        if plan is None:
            _dissolve(op)
            continue
        key = _without_operands(op)
        is_new = key not in names
        if is_new:
            names[key] = _unique(row_stem(plan), taken)
        tell_views(op)
        lower_rows(op, plan, module, names[key], is_new)
        lowered += 1
    return lowered


def _plan(op: ir.Operation, cpu: CpuVectors) -> KernelPlan | None:
    members = [inner.operation for inner in op.regions[0].blocks[0].operations]
    kept = [inner for inner in members if is_structured(inner) or is_bordered(inner)]
    # Before the contraction stands what scales a factor of it.
    first = next((i for i, inner in enumerate(kept) if is_contraction(inner)), None)
    group = None if first is None else read_contraction_group(kept[first:])
    if group is None or not all(_is_f32(value.type) for value in (*op.operands, *op.results)):
        return None
    return plan_contraction(group, cpu, constant_rhs=_parameter(op, group.rhs) is not None)


def _is_f32(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.F32Type)


def _parameter(op: ir.Operation, read: Read) -> ir.Value | None:
    """The weight that is read, None when it is no weight."""
    if not isinstance(read.value.owner, ir.Block):
        return None
    operand = op.operands[ir.BlockArgument(read.value).arg_number]
    owner = operand.owner
    return operand if not isinstance(owner, ir.Block) and owner.operation.name in CONSTANTS else None


def _lower(op: ir.Operation, plan: KernelPlan, module: ir.Block, names: dict[str, str], taken: set[str]) -> None:
    group = plan.group
    scale = () if group.scale is None else (group.scale.read,)
    reads = (*group.lhs.reads, group.rhs, *scale, *reads_after_sum(group))
    used = [read.value for read in reads if _is_argument(read.value)]
    arguments = list(dict.fromkeys(used))
    with ir.InsertionPoint(op), op.location:
        operands = [op.operands[ir.BlockArgument(argument).arg_number] for argument in arguments]
        if plan.storage is not Storage.GIVEN:
            rhs = arguments.index(group.rhs.value)
            operands[rhs] = _pack(plan, operands[rhs])
        key = _key(op, plan)
        if key not in names:
            names[key] = _symbol(plan, taken)
            tensors = [operand.type for operand in operands] + [op.results[0].type]

            def body(buffers: Sequence[ir.Value], ids: Sequence[ir.Value]) -> None:
                table = dict(zip([*arguments, group.output.value], buffers, strict=True))
                ContractionEmitter(plan, table).emit(ids[0], ids[1])

            add_executable(module, names[key], tensors, plan.workgroups, body)
        result = dispatch(names[key], operands, op.results[0].type)
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _is_argument(value: ir.Value) -> bool:
    return isinstance(value.owner, ir.Block)


def _pack(plan: KernelPlan, weight: ir.Value) -> ir.Value:
    """The right factor as the plan stores it, as a view: of a weight, computed when the model is compiled."""
    tiling, group = plan.tiling, plan.group
    if plan.storage is Storage.ROWS:
        order = (*tiling.panels, *tiling.reductions, tiling.lane)
        place = {d: dim(i) for i, d in enumerate(order)}
        copied = [tiling.extents[d] for d in order]
        by_dim = [place.get(d, ZERO) for d in range(len(tiling.extents))]
        copied_from = [expr.substitute(by_dim) for expr in group.rhs.access]
        return write_view(View.mapped(copied, shape_of(weight), copied_from), [weight], weight.type.element_type)
    outer = [tiling.extents[d] for d in tiling.panels]
    count, width, extent = tiling.panels_per_lane_range, tiling.panel_width, tiling.extents[tiling.lane]
    shape = (*outer, count, *tiling.reduction_extents, width)
    where: list[Expr] = [ZERO] * len(tiling.extents)
    for i, d in enumerate(tiling.panels):
        where[d] = dim(i)
    where[tiling.lane] = dim(len(outer)) * width + dim(len(shape) - 1)
    for i, d in enumerate(tiling.reductions):
        where[d] = dim(len(outer) + 1 + i)
    exprs = tuple(expr.substitute(where) for expr in group.rhs.access)
    whole = Box.of(shape)
    rest = extent - (count - 1) * width
    pieces = [Piece(whole, 0, exprs)]
    if rest < width:
        last = whole.with_axis(len(outer), count - 1, count)
        pieces = [
            Piece(whole.with_axis(len(outer), 0, count - 1), 0, exprs),
            Piece(last.with_axis(len(shape) - 1, 0, rest), 0, exprs),
            Piece(last.with_axis(len(shape) - 1, rest, width), Fill(0.0), ()),
        ]
    return write_view(View.of(shape, [shape_of(weight)], pieces), [weight], weight.type.element_type)


def _key(op: ir.Operation, plan: KernelPlan) -> str:
    """What the kernel computes, without the values it is given."""
    return f"{plan.storage} {_without_operands(op)}"


def _without_operands(op: ir.Operation) -> str:
    """A group's text without its operands, and with values named in order: the same for groups that are equal."""
    text = str(op)
    names: dict[str, str] = {}
    return re.sub(r"%\w+", lambda name: names.setdefault(name[0], f"%{len(names)}"), text[text.index(") : (") :])


def _symbol(plan: KernelPlan, taken: set[str]) -> str:
    tiling = plan.tiling
    reduction = "x".join(map(str, tiling.reduction_extents))
    stem = f"contraction_{tiling.num_rows}x{tiling.num_panels * tiling.panel_width}x{reduction}"
    return _unique(stem, taken)


def _unique(stem: str, taken: set[str]) -> str:
    symbol, suffix = stem, 0
    while symbol in taken:
        suffix += 1
        symbol = f"{stem}_{suffix}"
    taken.add(symbol)
    return symbol


def _symbols(module: ir.Block) -> set[str]:
    return {
        ir.StringAttr(op.operation.attributes["sym_name"]).value
        for op in module.operations
        if "sym_name" in op.operation.attributes
    }


def _dissolve(op: ir.Operation) -> None:
    """Puts the operations of a group back where the group stands."""
    block = op.regions[0].blocks[0]
    mapping: dict[ir.Value, ir.Value] = dict(zip(block.arguments, op.operands, strict=True))
    with ir.InsertionPoint(op):
        for inner in block.operations:
            if inner.operation.name == "smartmem.yield":
                results = [mapping[value] for value in inner.operation.operands]
                break
            clone_into(inner.operation, mapping)
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


@dataclass(frozen=True)
class LowerGroupsToCpu(Pass):
    """Generate a kernel for each group of f32 values: attention, or a contraction and what follows it.

    Scores and weights of attention stay on the stack, block by block of keys when there are many. Parameters are
    stored panel by panel, as a view that is computed when the model is compiled. Groups that no generator takes are
    dissolved, and IREE makes their kernels.
    """

    argument: ClassVar[str] = "smartmem-lower-groups-to-cpu"
    dependent_dialects: ClassVar[tuple[str, ...]] = (
        *("smartmem", "affine", "arith", "func", "math", "memref", "scf", "vector"),
    )
    example: ClassVar[str] = "matmul.mlir"

    lanes: int | None = option(None, "f32 elements of a vector register; by default what the module says, or 8")
    registers: int | None = option(None, "vector registers; by default what the module says, or 16")

    def run(self, op: ir.Operation) -> None:
        """Transforms the module."""
        lanes, registers = 8, 16
        if ATTRIBUTE in op.attributes:
            lanes, registers = ir.DenseI64ArrayAttr(op.attributes[ATTRIBUTE])
        lower_groups(op, CpuVectors(self.lanes or lanes, self.registers or registers))

"""A convolution by minimal filtering as a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import ZERO, Expr, dim, dims, linearize
from smartmem_mlir.index_maps.view import View
from smartmem_mlir.kernels.address_claims import Walk, claim_address, claim_copy
from smartmem_mlir.kernels.cpu.blocks import WORKERS
from smartmem_mlir.kernels.cpu.kernel import Kernel
from smartmem_mlir.kernels.cpu.panels import panelled
from smartmem_mlir.kernels.cpu.plan import CpuVectors
from smartmem_mlir.kernels.cpu.stages import LAUNCH_WORK
from smartmem_mlir.kernels.cpu.winograd_emit import WinogradEmitter
from smartmem_mlir.kernels.cpu.winograd_plan import TAPS, WinogradPlan, lane_address, plan_winograd
from smartmem_mlir.kernels.groups import arguments_of, is_f32, operands_of, parameter, reads_after_sum
from smartmem_mlir.transforms.claims import is_recorded
from smartmem_mlir.transforms.contraction_group import ContractionGroup
from smartmem_mlir.transforms.group_claims import claim_contraction
from smartmem_mlir.transforms.view_ops import shape_of, write_view

WORTH = 0.9
"""A kernel must cost less than this part of the direct one, since the model of costs is not exact, and a launch less,
since kernels that compute whole rows may share one and this one does not."""


def winograd_kernel(op: ir.Operation, group: ContractionGroup, cpu: CpuVectors, direct: Kernel) -> Kernel | None:
    """The kernel of a convolution by minimal filtering; None where that is impossible or no faster.

    Args:
        op: The group.
        group: What it computes.
        cpu: What it is to run on.
        direct: Its kernel otherwise.
    """
    if parameter(op, group.rhs) is None or not all(is_f32(value.type) for value in (*op.operands, *op.results)):
        return None
    plan = plan_winograd(group, cpu)
    if plan is None:
        return None
    kernel = _kernel(op, plan, "1")
    return kernel if kernel.cost + LAUNCH_WORK * sum(WORKERS) < WORTH * direct.cost else None


def _kernel(op: ir.Operation, plan: WinogradPlan, blocks: str) -> Kernel:
    group = plan.group
    arguments = arguments_of([*group.lhs.reads, group.rhs, *reads_after_sum(group)])

    def operands() -> list[ir.Value]:
        found = operands_of(op, arguments)
        rhs = arguments.index(group.rhs.value)
        found[rhs] = write_view(_packed(plan), [found[rhs]], found[rhs].type.element_type)
        return found

    def body(buffers: Sequence[ir.Value], ids: Sequence[ir.Value]) -> None:
        *memory, scratch = buffers
        table = dict(zip([*arguments, group.output.value], memory, strict=True))
        WinogradEmitter(plan, table, scratch).emit(ids[0], ids[1])

    places = plan.places
    outputs = "x".join(str(plan.extents[d]) for d in (*places.images, *places.groups, places.y, places.x))
    return Kernel(
        op=op,
        stem=f"winograd_{outputs}x{plan.channels}x{TAPS}x{TAPS}x{plan.depth}",
        variant=f"minimal filtering {blocks}",
        work=float(plan.work),
        cost=plan.cost,
        workgroups=plan.workgroups,
        operands=operands,
        body=body,
        beside=lambda count: _kernel(op, plan.in_blocks(count), str(count)),
        scratch=prod(plan.workgroups) * plan.scratch_size,
        claim=lambda: _claim(plan),
    )


def _claim(plan: WinogradPlan) -> None:
    if not is_recorded():
        return
    group = plan.group
    claim_contraction(group)
    root, extents = group.root.op, plan.extents
    space = Box.of(extents)
    here = dims(len(extents))
    walk = Walk(extents, here, here, extents)
    claim_address(root, walk, group.lhs.reads[0], plan.data)
    for read in (*reads_after_sum(group), group.output):
        address = lane_address(read, plan.places, space)
        assert address is not None, "the plan has checked every address"
        claim_address(root, walk, read, address[0] + dim(plan.places.channel) * address[1])
    packed = _packed(plan)
    width, places = plan.panel_width, plan.places
    at = [here[places.tap_y], here[places.tap_x], *(here[d] for d in places.groups), here[places.channel] // width]
    at += [here[places.depth], here[places.channel] % width]
    claim_copy(root, walk, group.rhs, linearize(at, packed.shape), packed)


def _packed(plan: WinogradPlan) -> View:
    """The weights before they are transformed: [taps, taps, groups, panels, channels in, channels of a panel]."""
    group, places, width, count = plan.group, plan.places, plan.panel_width, plan.panels_per_group
    source = shape_of(group.rhs.value)
    shape = (TAPS, TAPS, *plan.groups, count, plan.depth, width)
    where: list[Expr] = [ZERO] * len(plan.extents)
    for d, index in zip((places.tap_y, places.tap_x, *places.groups), dims(len(shape)), strict=False):
        where[d] = index
    panel, where[places.depth], lane = dims(len(shape))[-3:]
    where[places.channel] = panel * width + lane
    exprs = tuple(expr.substitute(where) for expr in group.rhs.access)
    return panelled(shape, source, exprs, len(shape) - 3, plan.channels - (count - 1) * width)

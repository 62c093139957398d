"""Which way a contraction runs: the one of least modelled time."""

from __future__ import annotations

from itertools import chain
from operator import itemgetter

from smartmem_mlir.kernels.spirv.cooperative_plan import cooperative_plans
from smartmem_mlir.kernels.spirv.limits import GpuLimits
from smartmem_mlir.kernels.spirv.plan import ShaderPlan, contraction_plans, tiled_plans
from smartmem_mlir.transforms.contraction_group import ContractionGroup


def plan_contraction(group: ContractionGroup, limits: GpuLimits, constant_rhs: bool) -> ShaderPlan | None:
    """Chooses lanes, loads and tiles.

    Args:
        group: What to compute.
        limits: Of the device.
        constant_rhs: Whether the right factor is known at compile time, so that it can be stored in any order.

    Returns:
        None when an address is no sum that a kernel can evaluate.
    """
    ways = (
        chain(tiled_plans(plan, limits), cooperative_plans(plan, limits))
        for plan in contraction_plans(group, constant_rhs)
    )
    return min(chain.from_iterable(ways), key=itemgetter(0), default=(0.0, None))[1]

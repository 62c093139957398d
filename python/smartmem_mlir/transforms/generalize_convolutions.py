"""generalize-convolutions: named convolutions become `linalg.generic`, whose operands may have any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import linalg

from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.pass_base import Pass
from smartmem_mlir.transforms.structured import build_generic, element_type, read_map

PREFIXES = ("linalg.conv_", "linalg.depthwise_conv_", "linalg.pooling_")


def generalize_convolutions(root: ir.Operation) -> int:
    """Rewrites every named convolution and pooling of f32 values.

    Returns:
        How many there were.
    """
    count = 0
    for op in block_operations(root):
        if not op.name.startswith(PREFIXES) or not isinstance(element_type(op.results[0].type), ir.F32Type):
            continue
        num_inputs, _ = op.attributes["operandSegmentSizes"]
        operands = list(op.operands)
        maps = [attr.value for attr in linalg.get_indexing_maps(op)]
        accesses = [read_map(affine_map) for affine_map in maps]
        parallel = frozenset().union(*(expr.dims for expr in accesses[-1]))
        with ir.InsertionPoint(op), op.location:
            made = build_generic(
                operands[:num_inputs],
                operands[num_inputs:],
                accesses,
                [d not in parallel for d in range(maps[0].n_dims)],
                op.regions[0].blocks[0],
            )
        for old, new in zip(op.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
        count += 1
    return count


@dataclass(frozen=True)
class GeneralizeConvolutions(Pass):
    """Turn named convolutions into generic operations.

    A named convolution fixes the order of its operands' dimensions. As a generic operation it is a contraction like any
    other: layouts are free, and its taps are index maps. For targets whose kernels take contractions in that form; code
    generators that look for convolutions by name want them left alone, which is why other element types are.
    """

    argument: ClassVar[str] = "smartmem-generalize-convolutions"
    dependent_dialects: ClassVar[tuple[str, ...]] = ("linalg",)
    example: ClassVar[str] = "conv_nchw.mlir"

    def run(self, op: ir.Operation) -> None:
        """Transforms every function of the module."""
        generalize_convolutions(op)

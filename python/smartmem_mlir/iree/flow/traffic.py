"""Bytes that one call of a kernel reads and writes.

Reads are counted per binding: what its loads cover, each distinct region once, and of a region no more than its users
touch (a slice, a strided or broadcasting indexing map, a gather of few rows); never more than the binding holds. Writes
are what the stores cover. Caches and partial re-reads by tiles are not modelled: this is the traffic that a kernel
cannot avoid.
"""

from __future__ import annotations

import re
from collections import defaultdict
from math import prod

from mlir import ir

from smartmem_mlir.iree.flow.movement import LOAD, STORE, _walk

_VIEWS = {"tensor.expand_shape", "tensor.collapse_shape", "tensor.cast", "tensor.reshape", "flow.tensor.reshape"}
_TENSOR_IN_BINDING = re.compile(r"^!iree_tensor_ext\.dispatch\.tensor<\w+:(tensor<.*>)>$")


def tensor_bytes(tensor: ir.Type) -> int | None:
    """Size of a tensor type in memory, dense; None if a dimension is dynamic. Sub-byte elements take a byte each."""
    shaped = ir.ShapedType(tensor)
    if not shaped.has_static_shape:
        return None
    return int(prod(shaped.shape)) * element_bytes(shaped.element_type)


def element_bytes(element: ir.Type) -> int:
    """Bytes of one element in memory."""
    if isinstance(element, ir.IndexType):
        return 8
    if isinstance(element, ir.ComplexType):
        return 2 * element_bytes(element.element_type)
    if isinstance(element, (ir.IntegerType, ir.FloatType)):
        return int(element.width + 7) // 8
    raise ValueError(f"element type without a size: {element}")


def body_traffic(body: ir.Operation) -> tuple[int | None, int | None]:
    """Bytes that one call reads and writes; None where they depend on the data.

    Args:
        body: The function inside the executable, with its loads and stores.
    """
    operations = _walk(body)
    written = [tensor_bytes(op.operands[0].type) for op in operations if op.name == STORE]
    # Two loads of one region have the same operands and print alike; their users add up, the region bounds the sum.
    regions: defaultdict[ir.Value, defaultdict[tuple[object, ...], list[ir.Value]]]
    regions = defaultdict(lambda: defaultdict(list))
    for op in operations:
        if op.name == LOAD:
            _, _, properties = op.get_asm(use_local_scope=True).partition(" <{")
            regions[op.operands[0]][(*op.operands, properties)].append(op.results[0])
    read = [_binding_reads(binding, list(loads.values())) for binding, loads in regions.items()]
    return _sum(read), _sum(written)


def _binding_reads(binding: ir.Value, regions: list[list[ir.Value]]) -> int | None:
    touched = _sum([_region_reads(loads) for loads in regions])
    match = _TENSOR_IN_BINDING.match(str(binding.type))
    capacity = tensor_bytes(ir.Type.parse(match[1], context=binding.context)) if match else None
    return touched if touched is None or capacity is None else min(touched, capacity)


def _region_reads(loads: list[ir.Value]) -> int | None:
    touched = _sum([_touched(load) for load in loads])
    size = tensor_bytes(loads[0].type)
    return touched if touched is None or size is None else min(touched, size)


def _touched(value: ir.Value) -> int | None:
    """Bytes of `value` that its users read: at most its size."""
    size = tensor_bytes(value.type)
    if size is None:
        return None
    uses = [_use_bytes(value, use.owner, use.operand_number) for use in value.uses]
    return min(size, sum(size if use is None else use for use in uses))


def _use_bytes(value: ir.Value, user: ir.Operation, operand: int) -> int | None:
    """Bytes of `value` that one user reads, None if all."""
    unit = element_bytes(ir.ShapedType(value.type).element_type)
    if user.name in _VIEWS or user.name == "tensor.extract_slice":
        return _touched(user.results[0])
    if user.name == "tensor.insert_slice" and operand == 1:
        # The destination: all of it but what the slice covers.
        size, covered = tensor_bytes(value.type), tensor_bytes(user.operands[0].type)
        return None if size is None or covered is None else size - covered
    if user.name == "tensor.extract":
        loops = _loop_ranges(user)
        return None if loops is None else prod(loops) * unit
    if user.name == "linalg.generic":
        loops = loop_extents(user)
        if loops is None:
            return None
        indexing = _indexing_maps(user)[operand]
        return prod(extent for loop, extent in enumerate(loops) if _uses_dim(indexing, loop)) * unit
    return None


def _loop_ranges(op: ir.Operation) -> list[int] | None:
    """How often an operation inside a `linalg.generic` runs, as the extents of its loops."""
    parent = op.parent
    return loop_extents(parent) if parent is not None and parent.name == "linalg.generic" else None


def loop_extents(generic: ir.Operation) -> list[int] | None:
    """Extents of the loops, from the operands that an axis indexes directly; None if one is dynamic or unknown."""
    ranges: dict[int, int] = {}
    maps = _indexing_maps(generic)
    for operand, indexing in zip(generic.operands, maps, strict=True):
        if not isinstance(operand.type, ir.RankedTensorType):
            continue
        shape = ir.RankedTensorType(operand.type)
        for axis, result in enumerate(indexing.results):
            if isinstance(result, ir.AffineDimExpr) and not shape.is_dynamic_dim(axis):
                ranges[result.position] = shape.get_dim_size(axis)
    loops = maps[0].n_dims
    return [ranges[loop] for loop in range(loops)] if all(loop in ranges for loop in range(loops)) else None


def _indexing_maps(generic: ir.Operation) -> list[ir.AffineMap]:
    return [ir.AffineMapAttr(attr).value for attr in ir.ArrayAttr(generic.attributes["indexing_maps"])]


def _uses_dim(indexing: ir.AffineMap, loop: int) -> bool:
    return any(f"d{loop}" in re.findall(r"d\d+", str(result)) for result in indexing.results)


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None

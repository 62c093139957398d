"""A NumPy interpreter for functions on tensors: linalg, tensor, arith, math and `smartmem.view`.

It shares no code with the passes: affine maps, views and iteration spaces are read here once more, element by element
in the order that the operations define. Floating-point types of every width are computed in double precision, so that
a result that differs by more than reassociated sums can is a wrong result. Memory that was never written holds NaN (or
a large odd integer), every read is checked against its tensor's bounds, and so is that nothing is written twice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from mlir import ir

from smartmem_mlir.dialects import smartmem

Array = np.ndarray
UNWRITTEN = 0x5EED5EED5EED


class InterpreterError(AssertionError):
    """The program reads out of bounds, writes twice, or uses something that the interpreter does not know."""


def interpret(module: ir.Module, name: str, arguments: Sequence[Array]) -> list[Array]:
    """Runs one function of a module.

    Args:
        module: Verified IR; the function has one block.
        name: The function.
        arguments: One array per argument; floating-point ones may have any width.

    Returns:
        The results: float64, int64 or bool arrays.
    """
    for op in module.body.operations:
        if op.operation.name == "func.func" and ir.StringAttr(op.operation.attributes["sym_name"]).value == name:
            block = op.operation.regions[0].blocks[0]
            values = {argument: _widened(array) for argument, array in zip(block.arguments, arguments, strict=True)}
            return _run_block(block, values)
    raise KeyError(name)


def _widened(array: Array) -> Array:
    if array.dtype == np.bool_:
        return array
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def dtype_of(type_: ir.Type) -> type:
    """What elements of this type are computed in."""
    if isinstance(type_, ir.ShapedType):
        type_ = type_.element_type
    if isinstance(type_, ir.IntegerType):
        return np.bool_ if type_.width == 1 else np.int64
    return np.int64 if isinstance(type_, ir.IndexType) else np.float64


def _unwritten(type_: ir.Type) -> Array:
    dtype = dtype_of(type_)
    poison = math.nan if dtype is np.float64 else (UNWRITTEN if dtype is np.int64 else False)
    return np.full(tuple(type_.shape), poison, dtype)


Values = dict[ir.Value, Array]


def _run_block(block: ir.Block, values: Values) -> list[Array]:
    for each in block.operations:
        op = each.operation
        operands = [values[operand] for operand in op.operands]
        if op.name in ("func.return", "linalg.yield", "tensor.yield", "smartmem.yield"):
            return operands
        results = _run(op, operands, values)
        for result, array in zip(op.results, results, strict=True):
            if isinstance(result.type, ir.ShapedType) and array.shape != tuple(result.type.shape):
                raise InterpreterError(f"{op.name} gives shape {array.shape} for {result.type}")
            values[result] = array
    raise InterpreterError("a block without terminator")


def _run(op: ir.Operation, operands: list[Array], values: Values) -> list[Array]:
    if op.name in _SCALAR:
        return [_SCALAR[op.name](*operands)]
    if op.name in _TENSOR:
        return [_TENSOR[op.name](op, operands, values)]
    if "indexing_maps" in op.attributes:
        return _run_structured(op, operands, values)
    if op.name == "smartmem.group":
        # Nothing but the arguments: a group may not see the values around it.
        body = op.regions[0].blocks[0]
        return _run_block(body, dict(zip(body.arguments, operands, strict=True)))
    raise InterpreterError(f"no rule for {op.name}")


# Scalar operations, applied to whole arrays.


def _select(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


def _truncating_div(a: Array, b: Array) -> Array:
    return np.trunc(a / b).astype(np.int64)


_SCALAR: Mapping[str, Callable[..., Array]] = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.subf": np.subtract,
    "arith.subi": np.subtract,
    "arith.mulf": np.multiply,
    "arith.muli": np.multiply,
    "arith.divf": np.divide,
    "arith.negf": np.negative,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.andi": np.bitwise_and,
    "arith.divsi": _truncating_div,
    "arith.remsi": np.fmod,
    "arith.floordivsi": np.floor_divide,
    "arith.select": _select,
    "arith.index_cast": lambda a: a,
    "arith.extf": lambda a: a,
    "arith.truncf": lambda a: a,
    "arith.extsi": lambda a: -a.astype(np.int64) if a.dtype == np.bool_ else a,
    "arith.extui": lambda a: a.astype(np.int64),
    "arith.trunci": lambda a: a,
    "arith.sitofp": lambda a: a.astype(np.float64),
    "math.exp": np.exp,
    "math.tanh": np.tanh,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda a: 1 / np.sqrt(a),
    "math.absf": np.abs,
}
_PREDICATES: tuple[Callable[..., Array], ...] = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
)


# Operations with attributes.


def _constant(op: ir.Operation, _: list[Array], __: Values) -> Array:
    value, type_ = op.attributes["value"], op.results[0].type
    dtype = dtype_of(type_)
    if not isinstance(type_, ir.ShapedType):
        return np.asarray(value.value, dtype)
    if value.is_splat:
        return np.full(tuple(type_.shape), value.get_splat_value().value, dtype)
    return np.array(value).astype(dtype).reshape(tuple(type_.shape))


def _compare(op: ir.Operation, operands: list[Array], _: Values) -> Array:
    predicate = op.attributes["predicate"].value
    if predicate >= len(_PREDICATES):
        # Unsigned comparisons, whose operands here are never negative.
        if any(np.any(operand < 0) for operand in operands):
            raise InterpreterError("unsigned comparison of negative numbers")
        predicate -= 4
    return _PREDICATES[predicate](*operands)


def _fill(op: ir.Operation, operands: list[Array], _: Values) -> Array:
    type_ = op.results[0].type
    return np.full(tuple(type_.shape), operands[0], dtype_of(type_))


def _static(op: ir.Operation, name: str) -> list[int]:
    return list(op.attributes[name])


def _bounds(op: ir.Operation, shape: Sequence[int]) -> tuple[slice, ...]:
    slices = []
    parts = (_static(op, "static_offsets"), _static(op, "static_sizes"), _static(op, "static_strides"))
    for extent, offset, size, stride in zip(shape, *parts, strict=True):
        last = offset + (size - 1) * stride
        if size and not (0 <= offset <= last < extent):
            raise InterpreterError(f"slice {offset}, {size}, {stride} of {extent}")
        slices.append(slice(offset, last + 1, stride) if size else slice(0, 0))
    return tuple(slices)


def _extract_slice(op: ir.Operation, operands: list[Array], _: Values) -> Array:
    return operands[0][_bounds(op, operands[0].shape)].reshape(tuple(op.results[0].type.shape))


def _insert_slice(op: ir.Operation, operands: list[Array], _: Values) -> Array:
    result = operands[1].copy()
    at = _bounds(op, result.shape)
    result[at] = operands[0].reshape(result[at].shape)
    return result


def _pad(op: ir.Operation, operands: list[Array], values: Values) -> Array:
    (fill,) = _run_block(op.regions[0].blocks[0], values)
    width = list(zip(_static(op, "static_low"), _static(op, "static_high"), strict=True))
    return np.pad(operands[0], width, constant_values=fill)


def _broadcast(op: ir.Operation, operands: list[Array], _: Values) -> Array:
    expanded = np.expand_dims(operands[0], tuple(_static(op, "dimensions")))
    return np.broadcast_to(expanded, tuple(op.results[0].type.shape))


def _reshape(op: ir.Operation, operands: list[Array], _: Values) -> Array:
    return operands[0].reshape(tuple(op.results[0].type.shape))


def _element(op: ir.Operation, operands: list[Array], _: Values) -> Array:
    return read(operands[0], operands[1:])


def _apply(op: ir.Operation, operands: list[Array], _: Values) -> Array:
    affine_map = op.attributes["map"].value
    return evaluate(affine_map.results[0], operands[: affine_map.n_dims], operands[affine_map.n_dims :])


def _view(op: ir.Operation, operands: list[Array], _: Values) -> Array:
    type_ = op.results[0].type
    shape = tuple(type_.shape)
    result = _unwritten(type_)
    written = np.zeros(shape, np.int64)
    grid = np.indices(shape)
    for attr in op.attributes["pieces"]:
        piece = smartmem.PieceAttr(attr)
        box = tuple(slice(lo, hi) for lo, hi in zip(piece.lower, piece.upper, strict=True))
        written[box] += 1
        if piece.source is None:
            result[box] = piece.fill.value
        else:
            here = [axis[box] for axis in grid]
            indices = [np.broadcast_to(evaluate(e, here), result[box].shape) for e in piece.map.results]
            result[box] = read(operands[piece.source], indices)
    if np.any(written != 1):
        raise InterpreterError(f"pieces cover an element {written.min()} to {written.max()} times")
    return result


_TENSOR: Mapping[str, Callable[[ir.Operation, list[Array], Values], Array]] = {
    "arith.constant": _constant,
    "arith.cmpi": _compare,
    "affine.apply": _apply,
    "linalg.fill": _fill,
    "linalg.transpose": lambda op, operands, _: operands[0].transpose(_static(op, "permutation")),
    "linalg.broadcast": _broadcast,
    "tensor.empty": lambda op, _, __: _unwritten(op.results[0].type),
    "tensor.extract": _element,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.concat": lambda op, operands, _: np.concatenate(operands, op.attributes["dim"].value),
    "tensor.pad": _pad,
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
    "smartmem.view": _view,
}


def read(array: Array, indices: Sequence[Array]) -> Array:
    """Elements of an array at index arrays; no index may be out of bounds, nor count from the end."""
    for axis, (index, extent) in enumerate(zip(indices, array.shape, strict=True)):
        if np.size(index) and (np.min(index) < 0 or np.max(index) >= extent):
            raise InterpreterError(f"axis {axis} of {array.shape} is read at [{np.min(index)}, {np.max(index)}]")
    return array[tuple(np.asarray(index) for index in indices)]


def evaluate(expr: ir.AffineExpr, dims: Sequence[Array], symbols: Sequence[Array] = ()) -> Array:
    """An affine expression of index arrays."""
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return np.asarray(expr.value, np.int64)
    lhs, rhs = evaluate(expr.lhs, dims, symbols), evaluate(expr.rhs, dims, symbols)
    if isinstance(expr, ir.AffineAddExpr):
        return lhs + rhs
    if isinstance(expr, ir.AffineMulExpr):
        return lhs * rhs
    if isinstance(expr, ir.AffineFloorDivExpr):
        return np.floor_divide(lhs, rhs)
    if isinstance(expr, ir.AffineCeilDivExpr):
        return -np.floor_divide(-lhs, rhs)
    return np.remainder(lhs, rhs)


# Structured operations.


def _run_structured(op: ir.Operation, operands: list[Array], values: Values) -> list[Array]:
    """One step of the loop nest for each point of the reduced dimensions, for all points of the others at once."""
    num_inputs = op.attributes["operandSegmentSizes"][0]
    maps = [attr.value for attr in op.attributes["indexing_maps"]]
    rank = maps[0].n_dims
    extents = _extents(maps, operands, rank)
    parallel = _parallel_dims(op, maps[num_inputs:], rank)
    reduced = [d for d in range(rank) if d not in parallel]
    grid = np.meshgrid(*(np.arange(extents[d]) for d in parallel), indexing="ij") if parallel else []
    space = tuple(extents[d] for d in parallel)
    body = op.regions[0].blocks[0]

    def positions(affine_map: ir.AffineMap, dims: Sequence[Array]) -> list[Array]:
        return [np.broadcast_to(evaluate(result, dims), space) for result in affine_map.results]

    dims: list[Array] = [np.asarray(0)] * rank
    for d, axis in zip(parallel, grid, strict=True):
        dims[d] = axis
    written = [positions(affine_map, dims) for affine_map in maps[num_inputs:]]
    outputs = operands[num_inputs:]
    elements = [read(output, where) for output, where in zip(outputs, written, strict=True)]
    for point in itertools.product(*(range(extents[d]) for d in reduced)):
        for d, index in zip(reduced, point, strict=True):
            dims[d] = np.full(space, index)
        scope = dict(values)
        for argument, operand, affine_map in zip(body.arguments, operands[:num_inputs], maps, strict=False):
            scope[argument] = operand if operand.ndim == 0 else read(operand, positions(affine_map, dims))
        for argument, element in zip(list(body.arguments)[num_inputs:], elements, strict=True):
            scope[argument] = element
        elements = [np.broadcast_to(e, space) for e in _run_body(body, scope, dims, space)]
    return [_written(*each) for each in zip(outputs, written, elements, strict=True)]


def _run_body(body: ir.Block, scope: Values, dims: Sequence[Array], space: tuple[int, ...]) -> list[Array]:
    for each in body.operations:
        op = each.operation
        if op.name == "linalg.index":
            scope[op.results[0]] = np.broadcast_to(dims[op.attributes["dim"].value], space)
            continue
        operands = [scope[operand] for operand in op.operands]
        if op.name == "linalg.yield":
            return operands
        (scope[op.results[0]],) = _run(op, operands, scope)
    raise InterpreterError("a body without terminator")


def _written(output: Array, where: Sequence[Array], elements: Array) -> Array:
    result = output.copy()
    if where:
        addresses = np.ravel_multi_index(tuple(where), output.shape)
        if len(np.unique(addresses)) != addresses.size:
            raise InterpreterError("an element is written twice")
    result[tuple(where)] = elements
    return result


def _extents(maps: Sequence[ir.AffineMap], operands: Sequence[Array], rank: int) -> list[int]:
    extents = [-1] * rank
    for affine_map, operand in zip(maps, operands, strict=True):
        for result, extent in zip(affine_map.results, operand.shape, strict=True):
            if isinstance(result, ir.AffineDimExpr):
                if extents[result.position] not in (-1, extent):
                    raise InterpreterError(f"d{result.position} has extents {extents[result.position]} and {extent}")
                extents[result.position] = extent
    if -1 in extents:
        raise InterpreterError(f"nothing says how long d{extents.index(-1)} is")
    return extents


def _parallel_dims(op: ir.Operation, output_maps: Sequence[ir.AffineMap], rank: int) -> list[int]:
    if "iterator_types" in op.attributes:
        return [d for d, kind in enumerate(op.attributes["iterator_types"]) if "parallel" in str(kind)]
    used = {result.position for each in output_maps for result in each.results}
    return [d for d in range(rank) if d in used]

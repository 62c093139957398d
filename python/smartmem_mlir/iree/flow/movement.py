"""Does a kernel compute, or does it only move data?

A kernel moves data if every element it stores is a copy of an element it loads or a constant. So the question is asked
of the *data path*: the values that reach a store, followed backwards. Arithmetic off that path is address arithmetic,
whatever its type: the wrap-around of a roll, the range check of a padding, the index loaded by a gather. A selection
lies on the path with its two data operands; if its condition depends on loaded elements (`where`, ReLU) it computes,
if it depends on the position only (padding, concatenation) it moves.

A type conversion changes values and counts as arithmetic, a bit cast does not. What is not in the tables below counts
as arithmetic, so a kernel is called data movement only when it is proved to be.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from mlir import ir

LOAD = "iree_tensor_ext.dispatch.tensor.load"
STORE = "iree_tensor_ext.dispatch.tensor.store"

# Operation -> the operands whose elements reappear in its results; None for all of them.
_FORWARDS: dict[str, tuple[int, ...] | None] = {
    "arith.bitcast": (0,),
    "flow.tensor.bitcast": (0,),
    "flow.tensor.reshape": (0,),
    "iree_encoding.set_encoding": (0,),
    "iree_encoding.unset_encoding": (0,),
    "iree_linalg_ext.gather": (0,),
    "iree_linalg_ext.map_gather": (0,),
    "iree_linalg_ext.map_load": (0,),
    "iree_linalg_ext.map_scatter": (0,),
    "iree_linalg_ext.map_store": (0,),
    "iree_tensor_ext.bitcast": (0,),
    "linalg.broadcast": (0,),
    "linalg.copy": (0,),
    "linalg.fill": (0,),
    "linalg.pack": None,
    "linalg.transpose": (0,),
    "linalg.unpack": (0,),
    "tensor.bitcast": (0,),
    "tensor.cast": (0,),
    "tensor.collapse_shape": (0,),
    "tensor.concat": None,
    "tensor.expand_shape": (0,),
    "tensor.extract": (0,),
    "tensor.extract_slice": (0,),
    "tensor.from_elements": None,
    "tensor.gather": (0,),
    "tensor.insert": (0, 1),
    "tensor.insert_slice": (0, 1),
    "tensor.pad": (0,),
    "tensor.reshape": (0,),
    "tensor.scatter": (0, 1),
    "tensor.splat": (0,),
}
_CONSTANTS = {"arith.constant", "tensor.empty"}


def body_kind(body: ir.Operation) -> Literal["compute", "movement", "fill"]:
    """What the body of a kernel does.

    Args:
        body: The function inside the executable, with its loads and stores.
    """
    stores = [op for op in _walk(body) if op.name == STORE]
    sources = _data_sources([store.operands[0] for store in stores])
    if sources is None:
        return "compute"
    return "movement" if any(_is_load(value) for value in sources) else "fill"


def computes_on_vectors(body: ir.Operation) -> bool:
    """Whether a kernel written as loops over memory does arithmetic on floating-point values.

    Args:
        body: A function whose only integers are addresses.
    """
    return any(
        op.name.startswith(("arith.", "math.", "vector."))
        and op.name not in _MEMORY
        and any(map(_is_float, op.results))
        for op in _walk(body)
    )


_MEMORY = frozenset({"arith.constant", "vector.broadcast", "vector.load", "vector.maskedload", "vector.transpose"})


def _is_float(value: ir.Value) -> bool:
    type_ = value.type
    element = type_.element_type if isinstance(type_, ir.VectorType) else type_
    return isinstance(element, ir.FloatType)


def _data_sources(values: Iterable[ir.Value]) -> list[ir.Value] | None:
    """Where the elements of `values` come from, unchanged; None if any of them is computed."""
    pending, seen, sources = list(values), set[ir.Value](), []
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        origins = _origins(value)
        if origins is None:
            return None
        if not origins:
            sources.append(value)
        pending += origins
    return sources


def _origins(value: ir.Value) -> list[ir.Value] | None:
    """The values whose elements `value` repeats: none for a load or a constant, None if it computes its own."""
    if isinstance(value.owner, ir.Block):
        return _block_argument_origins(ir.BlockArgument(value))
    op = value.owner
    if op.name in _CONSTANTS or op.name == LOAD:
        return []
    if op.name in _FORWARDS:
        indices = _FORWARDS[op.name]
        origins = list(op.operands) if indices is None else [op.operands[index] for index in indices]
        return origins + (_yielded(op) if op.name == "tensor.pad" else [])
    if op.name == "arith.select":
        condition, *data = op.operands
        return None if _depends_on_loads(condition) else data
    if op.name == "linalg.generic":
        return [_yielded(op)[ir.OpResult(value).result_number]]
    if op.name == "scf.if":
        if _depends_on_loads(op.operands[0]):
            return None
        position = ir.OpResult(value).result_number
        return [region.blocks[0].operations[-1].operands[position] for region in op.regions]
    return None


def _block_argument_origins(argument: ir.BlockArgument) -> list[ir.Value] | None:
    parent = argument.owner.owner
    if parent.name == "linalg.generic":
        return [parent.operands[argument.arg_number]]
    return None


def _depends_on_loads(value: ir.Value) -> bool:
    """Whether anything loaded from memory, of whatever type, takes part in computing `value`."""
    pending, seen = [value], set[ir.Value]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if _is_load(current):
            return True
        if isinstance(current.owner, ir.Block):
            origins = _block_argument_origins(ir.BlockArgument(current))
            if origins is None:
                # A loop-carried value or similar: nothing is known, so assume the worst.
                return True
            pending += origins
        else:
            pending += current.owner.operands
            for region in current.owner.regions:
                pending += region.blocks[0].operations[-1].operands
    return False


def _is_load(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == LOAD


def _yielded(op: ir.Operation) -> list[ir.Value]:
    return list(op.regions[0].blocks[0].operations[-1].operands)


def _walk(op: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(nested: ir.Operation) -> ir.WalkResult:
        found.append(nested)
        return ir.WalkResult.ADVANCE

    op.operation.walk(visit)
    return found

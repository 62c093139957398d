"""A function as the choice of layouts sees it: tensors, and how operations access them."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from smartmem_mlir.layouts.graph import Graph, Loops, Move, Opaque, Operation, Tensor, Use
from smartmem_mlir.transforms.access_folding import gathered
from smartmem_mlir.transforms.attention_growth import grow_attention, possible_scores
from smartmem_mlir.transforms.contraction_group import contraction_factors
from smartmem_mlir.transforms.contraction_growth import is_contraction
from smartmem_mlir.transforms.ir_walk import Positions
from smartmem_mlir.transforms.locations import node_names
from smartmem_mlir.transforms.structured import StructuredOp, read_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view, read_view

_FREE = frozenset({"tensor.empty", "linalg.fill", "arith.constant", "smartmem.parameter"})
"""Operations whose results have no order of their own: uniform, or stored at compile time."""

_MAX_NAME = 120


class LayoutGraph:
    """The graph of a function, with the value that each of its tensors is.

    Args:
        operations: The function's operations, in program order.
    """

    def __init__(self, operations: Sequence[ir.Operation]) -> None:
        self._numbers: dict[ir.Value, int] = {}
        self._tensors: list[Tensor] = []
        self._inside, self._attention = _attentions(operations)
        read = [self._operation(op, place) for place, op in enumerate(operations)]
        self.graph = Graph(tuple(self._tensors), tuple(op for op in read if op is not None))

    @property
    def values(self) -> dict[ir.Value, int]:
        """The number of each tensor."""
        return self._numbers

    def _operation(self, op: ir.Operation, place: int) -> Operation | None:
        if op.name in _FREE:
            return None
        name = _name(op, place)
        if is_view(op):
            sources = tuple(self._number(value) for value in op.operands)
            constant = bool(sources) and all(self._tensors[source].constant for source in sources)
            return Move(name, read_view(op), sources, self._add(op.results[0], name, constant=constant))
        structured = read_structured(op)
        taken = gathered(structured) if structured is not None else ()
        if structured is not None and not taken:
            return self._loops(structured, name)
        sources = tuple(self._number(value) for value in (*op.operands, *taken) if _is_tensor(value))
        for result in op.results:
            if _is_tensor(result):
                self._add(result, name, pinned=True)
        return Opaque(name, sources)

    def _loops(self, op: StructuredOp, name: str) -> Loops:
        inputs = tuple(
            Use(self._number(value), access)
            for value, access in zip(op.inputs, op.input_accesses, strict=True)
            if _is_tensor(value)
        )
        starts = tuple(None if _is_uniform(output) else self._number(output) for output in op.outputs)
        outputs = tuple(
            Use(self._add(result, name), access)
            for result, access in zip(op.op.results, op.output_accesses, strict=True)
        )
        loops = Loops(
            name,
            op.extents,
            op.reductions,
            inputs,
            outputs,
            starts,
            contraction=op.is_contraction and len(inputs) == len(op.inputs) == 2,
            has_kernel=contraction_factors(op) is not None,
            attention=op.op.results[0] in self._attention,
        )
        if not loops.permutable:
            for use in outputs:
                self._pin(use.tensor)
        return loops

    def _pin(self, number: int) -> None:
        tensor = self._tensors[number]
        self._tensors[number] = Tensor(tensor.name, tensor.shape, tensor.element_bytes, pinned=True)

    def _number(self, value: ir.Value) -> int:
        """The tensor's number; what no operation of the graph computes keeps its order."""
        if value not in self._numbers:
            op = defining_op(value)
            constant = op is not None and op.name in _FREE
            name = _name(op, 0) if op is not None else f"argument {ir.BlockArgument(value).arg_number}"
            return self._add(value, name, pinned=True, constant=constant)
        return self._numbers[value]

    def _add(self, value: ir.Value, name: str, *, pinned: bool = False, constant: bool = False) -> int:
        type_ = value.type
        # Tensors of unknown extent or with a layout have their order already.
        static = type_.has_static_shape and type_.encoding is None
        shape = tuple(extent if static or not type_.is_dynamic_dim(i) else 1 for i, extent in enumerate(type_.shape))
        width = type_.element_type.width if hasattr(type_.element_type, "width") else 64
        number = self._numbers[value] = len(self._tensors)
        internal = value in self._inside
        self._tensors.append(Tensor(name, shape, max(1, width // 8), pinned or not static, constant, internal))
        return number


def _attentions(operations: Sequence[ir.Operation]) -> tuple[set[ir.Value], set[ir.Value]]:
    """The values that exist only inside attention kernels, and the results of all contractions in them."""
    position = Positions(operations)
    scores = possible_scores(operations)
    inside: set[ir.Value] = set()
    computed: set[ir.Value] = set()
    for op in operations:
        if is_contraction(op) and op.results[0] in scores and op.results[0] not in computed:
            group = grow_attention(op, position)
            if group is not None:
                results = [result for member in group.members for result in member.results]
                inside.update(result for result in results if result != group.output.value)
                computed.update(results)
    return inside, computed


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _is_uniform(value: ir.Value) -> bool:
    op = defining_op(value)
    return op is not None and op.name in ("tensor.empty", "linalg.fill")


def _name(op: ir.Operation, place: int) -> str:
    """The source nodes that the operation stands for, else its kind and its place in the function."""
    names = node_names(op.location)
    if not names:
        return f"{op.name} at {place}"
    text = ", ".join(names)
    return text if len(text) <= _MAX_NAME else f"{names[0]} and {len(names) - 1} more"

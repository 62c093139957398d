"""Attention without a softmax, read as one kernel: queries times the product of keys and values.

Where nothing but a product stands between queries, keys and values, the keys can be multiplied with the values first:
their product, the state, has a row for each column of a key, however many keys there are. Two contractions are such an
attention if the second sums over dimensions that of the first one's factors only one has, the keys. Dimensions that the
state shares with both of the second contraction's factors and its result choose a matrix: batch, head. What follows is
elementwise on the result, also on the elements of one column of it together with each of its row: the divisor of a
normalised linear attention is a column of the product with values that are padded by ones. Every tensor is addressed
over one space, the first contraction's dimensions and after them those that only the queries have. The analysis changes
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr, dim
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.transforms.access_folding import reads_index
from smartmem_mlir.transforms.computed_reads import ComputedRead, read_computed
from smartmem_mlir.transforms.contraction_group import (
    Growth,
    Read,
    contraction_factors,
    initial_value,
    placement,
    start_growth,
)
from smartmem_mlir.transforms.linear_attention_epilogue import Epilogue, EpilogueStep, Product
from smartmem_mlir.transforms.structured import StructuredOp, read_structured
from smartmem_mlir.transforms.view_ops import is_view, read_view


@dataclass(frozen=True)
class LinearAttentionGroup:
    """A kernel that computes attention by way of a state.

    Args:
        extents: The space: the dimensions of the state's contraction, then those that only the queries have.
        outer: Dimensions that choose a matrix of queries, keys and values: batch, head.
        queries: Dimensions whose rows read the same state.
        keys: Dimensions that the state sums over.
        depth: Dimensions that the result sums over.
        values: Dimensions of a row of the product.
        query: What the state is multiplied by.
        key: First factor of the state.
        value: Second factor of the state.
        columns: For each dimension of the values, where the part of the product begins that the result is computed
            from element by element.
        result_extents: The space with the dimensions of the values as long as that part: what the epilogue and the
            output are addressed over.
        epilogue: What is computed from the product (number 0), in order.
        output: The value that the kernel computes and where each element of it is written.
        members: The operations from the first contraction on that the kernel replaces, in program order.
    """

    extents: tuple[int, ...]
    outer: tuple[int, ...]
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    depth: tuple[int, ...]
    values: tuple[int, ...]
    query: ComputedRead
    key: ComputedRead
    value: ComputedRead
    columns: tuple[int, ...]
    result_extents: tuple[int, ...]
    epilogue: tuple[EpilogueStep, ...]
    output: Read
    members: tuple[ir.Operation, ...]

    @property
    def factors(self) -> tuple[ComputedRead, ComputedRead, ComputedRead]:
        """Queries, keys and values."""
        return self.query, self.key, self.value

    @property
    def prologue(self) -> list[ir.Operation]:
        """Operations in front of the contractions that the kernel computes as it reads."""
        return [op for factor in self.factors for op in factor.operations]


@dataclass(frozen=True)
class _Weighing:
    """The second contraction.

    Args:
        op: It.
        own: Its dimensions over the space.
        query: Its factor that is not the state.
        outer: Dimensions of the space, see the group; and so on.
    """

    op: StructuredOp
    own: tuple[Expr, ...]
    query: ComputedRead
    outer: tuple[int, ...]
    queries: tuple[int, ...]
    depth: tuple[int, ...]
    values: tuple[int, ...]
    key: ComputedRead
    value: ComputedRead


class LinearAttentionReader:
    """Reads operations in program order; refuses those that have no place in the attention.

    Args:
        root: The contraction that computes the state.
        growth: Where the state stands over its dimensions.
    """

    def __init__(self, root: StructuredOp, growth: Growth) -> None:
        self.root = root
        self.growth = growth
        self.members: list[ir.Operation] = [root.op]
        self.weighing: _Weighing | None = None
        self.epilogue: Epilogue | None = None

    @staticmethod
    def start(op: ir.Operation) -> LinearAttentionReader | None:
        """A reader for attention whose state this operation computes, None when it is no contraction from zero on."""
        root, growth = read_structured(op), start_growth(op)
        if root is None or growth is None or initial_value(root) != 0.0 or not _is_f32(root):
            return None
        return LinearAttentionReader(root, growth)

    @property
    def space(self) -> Box:
        """The dimensions that everything is addressed over, as far as they are known."""
        if self.weighing is None:
            return self.growth.space
        rows = [self.weighing.op.extents[d] for d in self._new_dims(self.weighing.op, self.weighing.own)]
        return Box.of((*self.root.extents, *rows))

    def add(self, op: ir.Operation) -> bool:
        """Takes the next operation; False, and nothing happens, when it has no place here."""
        if is_view(op):
            taken = read_view(op).single_map is not None
        else:
            step = read_structured(op)
            taken = step is not None and (self._weigh(step) if self.epilogue is None else self.epilogue.add(step))
        if taken:
            self.members.append(op)
        return taken

    def group(self) -> LinearAttentionGroup | None:
        """What was read; None when it is no attention yet."""
        if self.weighing is None or self.epilogue is None:
            return None
        result = self.epilogue.result()
        if result is None:
            return None
        found = self.weighing
        return LinearAttentionGroup(
            extents=self.space.extents,
            outer=found.outer,
            queries=found.queries,
            keys=tuple(d for d, reduced in enumerate(self.root.reductions) if reduced),
            depth=found.depth,
            values=found.values,
            query=found.query,
            key=found.key,
            value=found.value,
            columns=result.columns,
            result_extents=result.extents,
            epilogue=result.steps,
            output=result.output,
            members=tuple(self.members),
        )

    def _new_dims(self, op: StructuredOp, own: Sequence[Expr]) -> list[int]:
        """Dimensions of the second contraction that the state does not have."""
        rank = len(self.root.extents)
        atoms = [expr.single_atom for expr in own]
        return [d for d, atom in enumerate(atoms) if isinstance(atom, Dim) and atom.index >= rank]

    def _weigh(self, op: StructuredOp) -> bool:
        """The contraction of the queries with the state."""
        factors = contraction_factors(op)
        if factors is None or reads_index(op) or initial_value(op) != 0.0 or not _is_f32(op):
            return False
        of_state = [(i, placed) for i in factors if (placed := placement(self.growth, op.inputs[i])) is not None]
        if len(of_state) != 1:
            return False
        ((state, placed),) = of_state
        atoms = [expr.single_atom for expr in op.input_accesses[state]]
        if not all(isinstance(atom, Dim) for atom in atoms) or len(set(atoms)) != len(atoms):
            return False
        known = {atom.index: expr for atom, expr in zip(atoms, placed, strict=True) if isinstance(atom, Dim)}
        if any(reduced and d not in known for d, reduced in enumerate(op.reductions)):
            return False
        new = [d for d in range(len(op.extents)) if d not in known]
        rank = len(self.root.extents)
        own = tuple(known[d] if d in known else dim(rank + new.index(d)) for d in range(len(op.extents)))
        space = Box.of((*self.root.extents, *(op.extents[d] for d in new)))
        depth = _dims([expr for d, expr in known.items() if op.reductions[d]])
        kept = _dims([expr for d, expr in known.items() if not op.reductions[d]])
        other = factors[1 - factors.index(state)]
        access = simplify_exprs([e.substitute(own) for e in op.input_accesses[other]], space)
        outer = kept & _dims(access)
        factors_of_state = self._factors(space, depth, kept - outer)
        if not depth or depth & kept or factors_of_state is None:
            return False
        key, value = factors_of_state
        self.weighing = _Weighing(
            op=op,
            own=own,
            query=read_computed(space, op.inputs[other], access, op.op),
            outer=tuple(sorted(outer)),
            queries=tuple(range(rank, len(space.extents))),
            depth=tuple(sorted(depth)),
            values=tuple(sorted(kept - outer)),
            key=key,
            value=value,
        )
        placed_result = simplify_exprs([e.substitute(own) for e in op.output_accesses[0]], space)
        rows = (*self.weighing.outer, *self.weighing.queries)
        self.epilogue = Epilogue(Product(op.op.results[0], placed_result, space, rows, self.weighing.values))
        return True

    def _factors(
        self, space: Box, depth: frozenset[int], values: frozenset[int]
    ) -> tuple[ComputedRead, ComputedRead] | None:
        """Keys and values: the factor without dimensions of the values, and that without those of the depth."""
        factors = contraction_factors(self.root)
        assert factors is not None, "the reader has started"
        accesses = [simplify_exprs(self.root.input_accesses[i], space) for i in factors]
        for key, value in ((0, 1), (1, 0)):
            if not _dims(accesses[key]) & values and not _dims(accesses[value]) & depth:
                first, second = (
                    read_computed(space, self.root.inputs[factors[i]], accesses[i], self.root.op) for i in (key, value)
                )
                return first, second
        return None


def read_linear_attention_group(members: Sequence[ir.Operation]) -> LinearAttentionGroup | None:
    """Reads operations as one kernel.

    Args:
        members: The contraction that computes the state, then operations up to the result, in program order.

    Returns:
        None when they are no such attention, or not all of them have a place in it.
    """
    reader = LinearAttentionReader.start(members[0]) if members else None
    if reader is None or not all(reader.add(op) for op in members[1:]):
        return None
    return reader.group()


def _dims(access: Sequence[Expr]) -> frozenset[int]:
    return frozenset().union(*(expr.dims for expr in access), ())


def _is_f32(op: StructuredOp) -> bool:
    return all(isinstance(value.type.element_type, ir.F32Type) for value in (*op.inputs, *op.outputs))

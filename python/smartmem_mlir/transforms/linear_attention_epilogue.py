"""What follows the product of a linear attention: elementwise operations on its elements and on its columns.

An element of the result is computed from the element of the product in the same place and perhaps from elements of the
same row in columns that are the same for all, such as the sum of weights that it is divided by. Which is which is read
backwards from the last operation: everything that it needs is followed through views to elements of the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.errors import NotInvertibleError
from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, dim, dims
from smartmem_mlir.index_maps.inverse import inverse
from smartmem_mlir.index_maps.map import IndexMap
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.transforms.access_folding import reads_index, through_views
from smartmem_mlir.transforms.computed_reads import dims_from
from smartmem_mlir.transforms.contraction_group import Read
from smartmem_mlir.transforms.structured import Access, StructuredOp, element_type
from smartmem_mlir.transforms.view_ops import shape_of, splat_constant

MOST_OPERATIONS = 64
"""Behind the products; a longer chain of operations has no need of a kernel that computes something else first."""


@dataclass(frozen=True)
class Column:
    """The element of the product in the row that is computed, and in one column.

    Args:
        at: Its coordinate in each dimension of the values.
    """

    at: tuple[int, ...]


Argument: TypeAlias = "Read | int | Column"
"""Of a step: what is read, the number of an earlier step (0 is the product's element), or one of the row's columns."""


@dataclass(frozen=True)
class EpilogueStep:
    """One elementwise operation.

    Args:
        op: The operation.
        own: Its dimensions over the result's space.
        body: Its scalar computation.
        arguments: For each argument of the body.
    """

    op: ir.Operation
    own: tuple[Expr, ...]
    body: ir.Block
    arguments: tuple[Argument, ...]


@dataclass(frozen=True)
class Product:
    """The product of queries and state.

    Args:
        value: The tensor.
        placed: Where each element of it stands over the space.
        space: The attention's dimensions.
        rows: Those that choose a row of the product.
        values: Those that choose an element of a row.
    """

    value: ir.Value
    placed: Access
    space: Box
    rows: tuple[int, ...]
    values: tuple[int, ...]

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return prod(self.space.extents[d] for d in self.values)

    def dims(self, access: Access) -> dict[int, Expr]:
        """Each dimension that chooses an element, when the tensor is read at `access`."""
        atoms = [expr.single_atom for expr in self.placed]
        found = {atom.index: expr for atom, expr in zip(atoms, access, strict=True) if isinstance(atom, Dim)}
        return {d: found.get(d, ZERO) for d in (*self.rows, *self.values)}


@dataclass(frozen=True)
class Result:
    """What is computed from the product.

    Args:
        columns: See `LinearAttentionGroup`, as for everything else.
        extents: The result's space.
        steps: The epilogue.
        output: The result.
    """

    columns: tuple[int, ...]
    extents: tuple[int, ...]
    steps: tuple[EpilogueStep, ...]
    output: Read


@dataclass
class Epilogue:
    """The operations behind a product, while they are found.

    Args:
        product: What they start from.
        made: The operation that computes each value.
        last: The last one.
    """

    product: Product
    made: dict[ir.Value, StructuredOp] = field(default_factory=dict)
    last: StructuredOp | None = None

    def add(self, op: StructuredOp) -> bool:
        """Takes an elementwise operation on values of the group; False for others."""
        if not op.is_elementwise or len(op.outputs) != 1 or reads_index(op) or len(self.made) == MOST_OPERATIONS:
            return False
        if not all(isinstance(element_type(v.type), ir.F32Type) for v in (*op.inputs, *op.op.results)):
            return False
        if next(iter(op.body.arguments[len(op.inputs)].uses), None) is not None:
            return False
        if not any(self._is_of_group(value) for value in op.inputs):
            return False
        self.made[op.op.results[0]] = op
        self.last = op
        return True

    def result(self) -> Result | None:
        """What the last operation computes; None when that is not one element for each of a part of the product."""
        if self.last is None:
            return Result(
                columns=(0,) * len(self.product.values),
                extents=self.product.space.extents,
                steps=(),
                output=Read(self.product.value, self.product.placed),
            )
        placed = self._place(self.last)
        if placed is None:
            return None
        columns, extents, own = placed
        evaluation = _Evaluation(self, columns, extents)
        if not evaluation.visit(self.last, tuple(own)):
            return None
        access = simplify_exprs([e.substitute(own) for e in self.last.output_accesses[0]], Box.of(extents))
        output = Read(self.last.op.results[0], access)
        return Result(columns, extents, tuple(evaluation.steps), output)

    def _is_of_group(self, value: ir.Value) -> bool:
        if not isinstance(value.type, ir.RankedTensorType):
            return False
        shape = shape_of(value)
        inner, _ = through_views(value, dims(len(shape)), shape)
        return inner == self.product.value or inner in self.made

    def _place(self, op: StructuredOp) -> tuple[tuple[int, ...], tuple[int, ...], list[Expr]] | None:
        """The part of the product that an operation goes over, the space with it, and its dimensions over that."""
        product = self.product
        ordered = sorted((*product.rows, *product.values))
        for access in self._product_reads(op, tuple(dims(len(op.extents))), Box.of(op.extents)):
            found = product.dims(access)
            if not any(found[d].dims for d in product.values) and product.columns > 1:
                continue
            index_map = IndexMap(Box.of(op.extents), tuple(found[d] for d in ordered))
            bounds = index_map.bounds()
            if any(
                (bounds.lo[k], bounds.hi[k]) != (0, product.space.hi[d])
                for k, d in enumerate(ordered)
                if d in product.rows
            ):
                return None
            try:
                backward = inverse(index_map, bounds)
            except NotInvertibleError:
                return None
            starts = {d: bounds.lo[k] for k, d in enumerate(ordered)}
            lengths = {d: bounds.extents[k] for k, d in enumerate(ordered)}
            extents = tuple(lengths.get(d, extent) for d, extent in enumerate(product.space.extents))
            shifted = [dim(d) + starts[d] for d in ordered]
            own = simplify_exprs([expr.substitute(shifted) for expr in backward.exprs], Box.of(extents))
            return tuple(starts[d] for d in product.values), extents, list(own)
        return None

    def _product_reads(self, op: StructuredOp, own: Sequence[Expr], space: Box) -> Iterator[Access]:
        """How an operation, and what computes its operands, reads the product."""
        for value, access in zip(op.inputs, op.input_accesses, strict=True):
            inner, read = self.read(value, access, own, space)
            if inner == self.product.value:
                yield read
            elif inner in self.made:
                behind = dims_from(self.made[inner].output_accesses[0], read, self.made[inner].extents)
                if behind is not None:
                    yield from self._product_reads(self.made[inner], behind, space)

    @staticmethod
    def read(value: ir.Value, access: Access, own: Sequence[Expr], space: Box) -> tuple[ir.Value, Access]:
        """What an operation reads behind views, over a space."""
        wanted = simplify_exprs([expr.substitute(own) for expr in access], space)
        return through_views(value, wanted, space.extents)


class _Evaluation:
    """Lists what must be computed for an element of the result.

    Args:
        epilogue: The operations.
        columns: Where the part of the product begins that the result is computed from.
        extents: The result's space.
    """

    def __init__(self, epilogue: Epilogue, columns: Sequence[int], extents: Sequence[int]) -> None:
        self._epilogue = epilogue
        self._columns = columns
        self._space = Box.of(extents)
        self._numbers: dict[tuple[ir.Value, tuple[Expr, ...]], int] = {}
        self.steps: list[EpilogueStep] = []

    def visit(self, op: StructuredOp, own: tuple[Expr, ...]) -> bool:
        """Adds the operation at these indices and what it needs; False when it needs something else of the product."""
        arguments: list[Argument] = []
        for value, access in zip(op.inputs, op.input_accesses, strict=True):
            argument = self._argument(value, access, own)
            if argument is None:
                return False
            arguments.append(argument)
        self.steps.append(EpilogueStep(op.op, own, op.body, tuple(arguments)))
        self._numbers[op.op.results[0], own] = len(self.steps)
        return True

    def _argument(self, value: ir.Value, access: Access, own: Sequence[Expr]) -> Argument | None:
        if splat_constant(value) is not None:
            return Read(value, ())
        inner, read = self._epilogue.read(value, access, own, self._space)
        if inner == self._epilogue.product.value:
            return self._of_product(read)
        if inner not in self._epilogue.made:
            return Read(inner, read)
        op = self._epilogue.made[inner]
        behind = dims_from(op.output_accesses[0], read, op.extents)
        if behind is None:
            return None
        key = inner, tuple(behind)
        if key not in self._numbers and not self.visit(op, key[1]):
            return None
        return self._numbers[key]

    def _of_product(self, access: Access) -> int | Column | None:
        product = self._epilogue.product
        found = product.dims(access)
        extents = self._space.extents
        if any(found[d] != (dim(d) if extents[d] > 1 else ZERO) for d in product.rows):
            return None
        at = [found[d] for d in product.values]
        if all(expr.is_constant for expr in at) and prod(extents[d] for d in product.values) > 1:
            return Column(tuple(expr.const for expr in at))
        starts = zip(product.values, self._columns, strict=True)
        same = [(dim(d) if extents[d] > 1 else ZERO) + start for d, start in starts]
        if at == same:
            return 0
        return Column(tuple(expr.const for expr in at)) if all(expr.is_constant for expr in at) else None

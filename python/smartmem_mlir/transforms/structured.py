"""Linalg operations as data: operands with index maps, an iteration space and a scalar body.

`linalg.generic` and the named contractions are read into one form and written back as `linalg.generic`, so that a
transform changes maps and operands without knowing how the operation was spelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import linalg, tensor

from smartmem_mlir.index_maps.expr import ZERO, Dim, Expr, FloorDiv, dim
from smartmem_mlir.transforms.attribute_cache import remembered

_NAMED_WITH_MAPS = frozenset({"linalg.matmul", "linalg.batch_matmul", "linalg.contract"})

Access = tuple[Expr, ...]
"""Coordinates of an operand over the iteration space."""


@dataclass(frozen=True)
class StructuredOp:
    """A structured operation, read from the IR.

    Args:
        op: The operation.
        inputs: Its tensor (or scalar) inputs.
        outputs: The tensors it initialises its results with.
        accesses: One per input, then one per output.
        reductions: For each dimension of the iteration space, whether it is reduced.
        extents: The iteration space.
        body: The scalar computation; its arguments are the inputs' elements, then the outputs'.
    """

    op: ir.Operation
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    accesses: tuple[Access, ...]
    reductions: tuple[bool, ...]
    extents: tuple[int, ...]
    body: ir.Block

    @property
    def input_accesses(self) -> tuple[Access, ...]:
        """Accesses of the inputs."""
        return self.accesses[: len(self.inputs)]

    @property
    def output_accesses(self) -> tuple[Access, ...]:
        """Accesses of the outputs."""
        return self.accesses[len(self.inputs) :]

    @property
    def is_elementwise(self) -> bool:
        """Whether no dimension is reduced."""
        return not any(self.reductions)

    @property
    def is_contraction(self) -> bool:
        """Whether products of elements of two inputs are summed: data is reused over time, so that layout matters."""
        if self.is_elementwise or len(self.outputs) != 1:
            return False
        accumulator = len(self.inputs)
        terms = _operands_of(list(self.body.operations)[-1].operands[0], "arith.addf", "arith.addi")
        for product, total in (terms, terms[::-1]) if terms else ():
            factors = {self.argument_number(factor) for factor in _operands_of(product, "arith.mulf", "arith.muli")}
            if (
                self.argument_number(total) == accumulator
                and len(factors) == 2
                and all(factor is not None and factor < accumulator for factor in factors)
            ):
                return True
        return False

    def argument_number(self, value: ir.Value) -> int | None:
        """Number of the body's argument that `value` is, perhaps converted to another width."""
        while not isinstance(value.owner, ir.Block):
            if value.owner.operation.name not in _CASTS:
                return None
            value = value.owner.operation.operands[0]
        return argument_number(value, self.body)


_CASTS = frozenset({"arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.trunci"})


def _operands_of(value: ir.Value, *kinds: str) -> list[ir.Value]:
    """Operands of the operation of one of these kinds that computes `value`; none if another one does."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name not in kinds:
        return []
    return list(owner.operation.operands)


def argument_number(value: ir.Value, body: ir.Block) -> int | None:
    """Number of the argument of `body` that `value` is; None for other values, those of enclosing blocks included."""
    owner = value.owner
    return int(ir.BlockArgument(value).arg_number) if isinstance(owner, ir.Block) and owner == body else None


def is_structured(op: ir.Operation) -> bool:
    """Whether `read_structured` understands the operation."""
    return op.name == "linalg.generic" or op.name in _NAMED_WITH_MAPS


def read_structured(op: ir.Operation) -> StructuredOp | None:
    """Reads a linalg operation on statically shaped tensors with elements; None for any other operation."""
    if not is_structured(op):
        return None
    num_inputs, num_outputs = op.attributes["operandSegmentSizes"]
    operands = tuple(op.operands)
    accesses, rank = _read_maps(op.attributes["indexing_maps"])
    extents = _iteration_space(operands, accesses, rank)
    if extents is None:
        return None
    if "iterator_types" in op.attributes:
        reductions = _read_iterators(op.attributes["iterator_types"])
    else:
        parallel = set().union(*(e.dims for access in accesses[num_inputs:] for e in access))
        reductions = tuple(i not in parallel for i in range(rank))
    return StructuredOp(
        op,
        operands[:num_inputs],
        operands[num_inputs : num_inputs + num_outputs],
        accesses,
        reductions,
        extents,
        op.regions[0].blocks[0],
    )


@remembered
def _read_maps(maps: ir.ArrayAttr) -> tuple[tuple[Access, ...], int]:
    """The maps of all operands, and the rank of the iteration space."""
    return tuple(read_map(attr.value) for attr in maps), maps[0].value.n_dims


@remembered
def _read_iterators(kinds: ir.ArrayAttr) -> tuple[bool, ...]:
    """For each dimension, whether it is reduced."""
    return tuple("reduction" in str(kind) for kind in kinds)


def _iteration_space(operands: Sequence[ir.Value], accesses: Sequence[Access], rank: int) -> tuple[int, ...] | None:
    extents: dict[int, int] = {}
    for operand, access in zip(operands, accesses, strict=True):
        shape = static_shape(operand.type)
        if shape is None or 0 in shape:
            return None
        for size, expr in zip(shape, access, strict=True):
            atom = expr.single_atom
            if isinstance(atom, Dim):
                extents[atom.index] = size
    if len(extents) != rank:
        return None
    return tuple(extents[i] for i in range(rank))


def static_shape(type_: ir.Type) -> tuple[int, ...] | None:
    """Shape of a tensor type, () for a scalar, None when some extent is dynamic or the tensor has a layout already."""
    if not isinstance(type_, ir.RankedTensorType):
        return ()
    return tuple(type_.shape) if type_.has_static_shape and type_.encoding is None else None


def read_map(affine_map: ir.AffineMap) -> Access:
    """An affine map as expressions; its symbols are further dimensions."""
    return tuple(_read_expr(expr, affine_map.n_dims) for expr in affine_map.results)


def _read_expr(expr: ir.AffineExpr, num_dims: int) -> Expr:
    if isinstance(expr, ir.AffineDimExpr):
        return dim(expr.position)
    if isinstance(expr, ir.AffineSymbolExpr):
        return dim(num_dims + expr.position)
    if isinstance(expr, ir.AffineConstantExpr):
        return Expr(expr.value)
    if isinstance(expr, ir.AffineCeilDivExpr):
        divisor = _read_expr(expr.rhs, num_dims).const
        return (_read_expr(expr.lhs, num_dims) + (divisor - 1)) // divisor
    lhs, rhs = _read_expr(expr.lhs, num_dims), _read_expr(expr.rhs, num_dims)
    if isinstance(expr, ir.AffineAddExpr):
        return lhs + rhs
    if isinstance(expr, ir.AffineMulExpr):
        return lhs * rhs.const if rhs.is_constant else rhs * lhs.const
    if isinstance(expr, ir.AffineFloorDivExpr):
        return lhs // rhs.const
    return lhs % rhs.const


def write_map(access: Sequence[Expr], rank: int) -> ir.AffineMap:
    """Expressions over `rank` dimensions as an affine map."""
    return ir.AffineMap.get(rank, 0, [_write_expr(expr) for expr in access])


def _write_expr(expr: Expr) -> ir.AffineExpr:
    total: ir.AffineExpr | None = None
    for atom, coefficient in expr.terms:
        if isinstance(atom, Dim):
            term = ir.AffineDimExpr.get(atom.index)
        else:
            build = ir.AffineFloorDivExpr if isinstance(atom, FloorDiv) else ir.AffineModExpr
            term = build.get(_write_expr(atom.arg), ir.AffineConstantExpr.get(atom.value))
        term = term * coefficient
        total = term if total is None else total + term
    if total is None:
        return ir.AffineConstantExpr.get(expr.const)
    return total + expr.const if expr.const else total


def is_projection(access: Access) -> bool:
    """Whether each coordinate is a distinct dimension, or 0: what linalg tiles and fuses as an indexing map."""
    seen = [expr.single_atom for expr in access if expr != ZERO]
    return all(isinstance(atom, Dim) for atom in seen) and len(set(seen)) == len(seen)


def unbounded_dims(accesses: Sequence[Access], rank: int) -> list[int]:
    """Dimensions that are no coordinate of any access: no operand would say how long they are."""
    atoms = (expr.single_atom for access in accesses for expr in access)
    bounded = {atom.index for atom in atoms if isinstance(atom, Dim)}
    return [d for d in range(rank) if d not in bounded]


def tensor_type(shape: Sequence[int], like: ir.Type) -> ir.RankedTensorType:
    """The tensor type of this shape with `like`'s element type and no encoding."""
    element = like.element_type if isinstance(like, ir.RankedTensorType) else like
    return ir.RankedTensorType.get(list(shape), element)


def build_generic(
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    accesses: Sequence[Access],
    reductions: Sequence[bool],
    body: ir.Block,
) -> linalg.GenericOp:
    """Creates a `linalg.generic` with a copy of `body` at the current insertion point."""
    return build_generic_with(inputs, outputs, accesses, reductions, lambda arguments: copy_body(body, arguments))


def build_generic_with(
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    accesses: Sequence[Access],
    reductions: Sequence[bool],
    body: Callable[[Sequence[ir.Value]], object],
) -> linalg.GenericOp:
    """Creates a `linalg.generic` at the current insertion point.

    Args:
        inputs: Tensors or scalars.
        outputs: Tensors; their types are the results'.
        accesses: One per input, then one per output.
        reductions: For each dimension, whether it is reduced.
        body: Builds the scalar computation, its `linalg.yield` included, from the elements.
    """
    rank = len(reductions)
    kinds = ", ".join(f"#linalg.iterator_type<{'reduction' if r else 'parallel'}>" for r in reductions)
    generic = linalg.GenericOp(
        [output.type for output in outputs],
        list(inputs),
        list(outputs),
        [write_map(access, rank) for access in accesses],
        ir.Attribute.parse(f"[{kinds}]"),
    )
    elements = [element_type(value.type) for value in (*inputs, *outputs)]
    block = ir.Block.create_at_start(generic.regions[0], elements, [generic.location] * len(elements))
    with ir.InsertionPoint(block):
        body(list(block.arguments))
    return generic


def element_type(type_: ir.Type) -> ir.Type:
    """Element type of a tensor; a scalar type is its own."""
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


def copy_body(body: ir.Block, arguments: Sequence[ir.Value], *, keep_yield: bool = True) -> list[ir.Value]:
    """Copies the operations of `body` to the insertion point, its block arguments replaced by `arguments`.

    Args:
        body: A linalg body.
        arguments: One value per argument of the body.
        keep_yield: Whether to copy the `linalg.yield` too.

    Returns:
        The values that the body yields, as copied.
    """
    mapping: dict[ir.Value, ir.Value] = dict(zip(body.arguments, arguments, strict=True))
    yielded: list[ir.Value] = []
    for inner in body.operations:
        if inner.operation.name == "linalg.yield":
            yielded = [mapping.get(operand, operand) for operand in inner.operation.operands]
            if not keep_yield:
                break
        copy_operation(inner.operation, mapping)
    return yielded


def copy_operation(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
    """Copies an operation to the insertion point and adds its results to what stands for what."""
    copied = op.clone()
    for i, operand in enumerate(op.operands):
        if operand in mapping:
            copied.operands[i] = mapping[operand]
    mapping.update(zip(op.results, copied.results, strict=True))


def splat_init(value: ir.Value, shape: Sequence[int]) -> ir.Value | None:
    """A tensor of another shape initialised like `value`: `tensor.empty` or a `linalg.fill` of a scalar.

    Args:
        value: The `outs` operand of a structured operation.
        shape: Shape wanted.

    Returns:
        The new tensor, created at the insertion point, or None when `value`'s contents are not uniform.
    """
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView):
        return None
    op = owner.operation
    type_ = tensor_type(shape, value.type)
    if op.name == "tensor.empty":
        return tensor.empty(list(shape), type_.element_type)
    if op.name == "linalg.fill":
        empty = tensor.empty(list(shape), type_.element_type)
        return linalg.fill(op.operands[0], outs=[empty])
    return None


def feeds_contraction(value: ir.Value) -> bool:
    """Whether every user of `value` is a contraction."""
    for use in value.uses:
        structured = read_structured(use.owner.operation)
        if structured is None or not structured.is_contraction:
            return False
    return True


def coordinates_of_dims(access: Access, rank: int) -> list[Expr]:
    """Each of `rank` dimensions over the coordinates of a tensor accessed by a projection; 0 where it has none."""
    placed = [ZERO] * rank
    for coordinate, expr in enumerate(access):
        atom = expr.single_atom
        if isinstance(atom, Dim):
            placed[atom.index] = dim(coordinate)
    return placed

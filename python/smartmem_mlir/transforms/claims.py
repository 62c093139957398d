"""What passes tell the record: each function states one kind of rewrite as views and hands it on without any IR.

An operation's access to a tensor is a view from its iteration space to the tensor. So "this operation now reads the
source of that view" is the claim that access and view, composed, are the new access; nothing is claimed about how the
passes came to think so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mlir import ir

from smartmem_mlir.index_maps import movement
from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.certificates import Certificate
from smartmem_mlir.index_maps.evidence import Rewrite
from smartmem_mlir.index_maps.expr import Expr, dim, dims
from smartmem_mlir.index_maps.movement_claims import MovementClaim
from smartmem_mlir.index_maps.refine import Refinement, StridedAccess
from smartmem_mlir.index_maps.view import Piece, View
from smartmem_mlir.transforms.evidence import Fate, How, current_evidence
from smartmem_mlir.transforms.locations import node_names
from smartmem_mlir.transforms.structured import Access, StructuredOp
from smartmem_mlir.transforms.view_ops import defining_op, read_view, shape_of

if TYPE_CHECKING:
    from smartmem_mlir.transforms.access_folding import FoldedAccesses


def is_recorded() -> bool:
    """Whether anybody records; what is needed only to state a claim need not be made otherwise."""
    return current_evidence() is not None


def access_view(extents: Sequence[int], shape: Sequence[int], access: Sequence[Expr]) -> View:
    """An access as a view, as it is: nothing is simplified, so that the claim is about what stood in the IR."""
    return View(tuple(extents), (tuple(shape),), (Piece(Box.of(extents), 0, tuple(access)),))


def claim(
    op: ir.Operation,
    chain: Sequence[View],
    after: View,
    *,
    operands: Sequence[int] | None = None,
    through: Sequence[View] = (),
    sources: Sequence[int] | None = None,
) -> None:
    """Records that a chain of views became `after`, read through `through`; see `Certificate`.

    Args:
        op: The operation that was rewritten.
        chain: As in `Certificate`.
        after: As in `Certificate`.
        operands: As in `Certificate`; 0 for each if None.
        through: As in `Certificate`.
        sources: As in `Certificate`.
    """
    evidence = current_evidence()
    if evidence is None or (len(chain) == 1 and not through and sources is None and chain[0] == after):
        return
    places = tuple(operands) if operands is not None else (0,) * (len(chain) - 1)
    same = sources is None or list(sources) == list(range(len(after.operands)))
    certificate = Certificate(
        tuple(chain), places, after, through=tuple(through), sources=None if same else tuple(sources or ())
    )
    evidence.rewrites.append(Rewrite(evidence.transform, node_names(op.location), op.name, certificate))


def tell(
    view_op: ir.Operation,
    how: How,
    operators: Sequence[ir.Operation] = (),
    *,
    operation: str = "",
    reason: str = "",
    location: ir.Location | None = None,
) -> None:
    """Records what became of a view.

    Args:
        view_op: The view, or the movement operation that it came from.
        how: What became of it.
        operators: The operations that took it over.
        operation: Name of the operation that it became, if not that of the first operator.
        reason: Why it was copied, or how much of it inside a kernel.
        location: Location of what the view stands for, if it stands for more than its own location says.
    """
    evidence = current_evidence()
    if evidence is None:
        return
    # Most views are raised and cancel each other: nobody asks for their maps, and printing them takes its time.
    taken = how in ("read", "staged", "written", "index", "copy", "reordered") and view_op.name == "smartmem.view"
    single = read_view(view_op).single_map if taken else None
    evidence.fates.append(
        Fate(
            evidence.transform,
            node_names(location or view_op.location),
            how,
            operation or (operators[0].name if operators else ""),
            tuple(dict.fromkeys(name for op in operators for name in node_names(op.location))),
            "" if single is None else str(single),
            reason,
        )
    )


def claim_movement(op: ir.Operation, view: View, attributes: dict[str, Any]) -> None:
    """Records that a data-movement operation is a view; `attributes` define it as `MovementClaim` says."""
    evidence = current_evidence()
    if evidence is not None:
        found = MovementClaim(op.name, tuple(sorted(attributes.items())), view)
        evidence.rewrites.append(Rewrite(evidence.transform, node_names(op.location), op.name, found))


def claim_rebuilt(
    op: StructuredOp, plan: FoldedAccesses, reads: Sequence[View | None], written: ir.Operation | None
) -> None:
    """Records how an operation reads and writes over a refined iteration space.

    Args:
        op: The operation as it was.
        plan: Its accesses as they are now.
        reads: For each input the view of its source that is read now; None for a scalar.
        written: The view of its result that it now writes, if that was folded into it.
    """
    if not is_recorded():
        return
    inputs = zip(op.inputs, op.input_accesses, plan.sources, plan.accesses, reads, strict=False)
    for value, access, source, strided, read in inputs:
        if read is not None:
            over = _Refined(op.extents, plan.refinement, access, strided)
            before = [*over.reads(access, shape_of(value)), *views_between(value, source)]
            claim(op.op, before, read, through=over.digits(read.shape))
    outputs = zip(op.outputs, op.output_accesses, plan.accesses[len(op.inputs) :], strict=True)
    for value, access, strided in outputs:
        over = _Refined(op.extents, plan.refinement, access, strided)
        chain = over.reads(access, shape_of(value))
        if written is not None and plan.placed is not None:
            view = read_view(written)
            placed = access_view(view.operands[0], view.shape, plan.placed.exprs)
            claim(op.op, [view, placed], View.identity(view.shape))
            chain.append(placed)
        stored = tuple(digit.size for digit in strided.digits if digit.dim is not None)
        reshaped = movement.reshape(stored, chain[-1].operands[0])
        if not reshaped.is_identity():
            chain.append(reshaped)
        claim(op.op, chain, access_view(over.extents, stored, over.new_dims))


class _Refined:
    """One access before and after its iteration space was split, over the dimensions that occur in either."""

    def __init__(self, extents: Sequence[int], refinement: Refinement, access: Access, strided: StridedAccess) -> None:
        indexed = set().union(*(expr.dims for expr in access))
        used = [d for d in range(len(extents)) if d in indexed or set(refinement.digits(d)) & set(strided.dims)]
        digits = [digit for d in used for digit in refinement.digits(d)]
        parts = [refinement.parts[d] for d in used]
        self._old = {d: dim(position) for position, d in enumerate(used)}
        self._old_extents = [extents[d] for d in used]
        self._merge = None if all(len(part) == 1 for part in parts) else Refinement(tuple(parts)).exprs()
        self._rank = len(extents)
        self.extents = [extent for part in parts for extent in part]
        self.new_dims = tuple(dim(digits.index(d)) for d in strided.dims)

    def reads(self, access: Access, shape: Sequence[int]) -> list[View]:
        """The access as it was, from the split space to the tensor."""
        renumbered = [self._old.get(d, Expr(0)) for d in range(self._rank)]
        before = access_view(self._old_extents, shape, [expr.substitute(renumbered) for expr in access])
        if self._merge is None:
            return [before]
        return [access_view(self.extents, self._old_extents, self._merge), before]

    def digits(self, shape: Sequence[int]) -> list[View]:
        """The access as it is, to a tensor whose axes are dimensions; nothing if those are all of them, in order."""
        if self.new_dims == dims(len(self.extents)):
            return []
        return [access_view(self.extents, shape, self.new_dims)]


def views_above(value: ir.Value, source: ir.Value) -> Iterator[ir.Operation]:
    """The view operations from `value` up to `source`, consumer first."""
    while value != source:
        op = defining_op(value)
        assert op is not None, "the source is above the value"
        yield op
        value = op.operands[0]


def views_between(value: ir.Value, source: ir.Value) -> list[View]:
    """The views from `value` up to `source`, consumer first."""
    return [read_view(op) for op in views_above(value, source)]


def claim_reread(
    op: StructuredOp,
    space: Sequence[int],
    old_dims: Sequence[Expr],
    reads: Sequence[tuple[ir.Value, Access, ir.Value, View | None, Access]],
) -> None:
    """Records that an operation over another iteration space reads the same elements.

    Args:
        op: The operation as it was.
        space: The new iteration space.
        old_dims: Each old dimension over the new ones.
        reads: For each input: what was read and how; the tensor behind views that is read now, the view of it that
            was made (None: the tensor itself is read), and how.
    """
    if not is_recorded():
        return
    entered = access_view(space, op.extents, old_dims)
    for value, access, source, view, read in reads:
        chain = [entered, access_view(op.extents, shape_of(value), access), *views_between(value, source)]
        if view is None:
            claim(op.op, chain, access_view(space, shape_of(source), read))
        else:
            claim(op.op, chain, view, through=[access_view(space, view.shape, read)])


def claim_rewritten(op: StructuredOp, space: Sequence[int], old_dims: Sequence[Expr], view: View) -> None:
    """Records that an operation over another iteration space computes a view of its result instead of its result.

    Args:
        op: The operation as it was.
        space: The new iteration space: the view's dimensions first.
        old_dims: Each old dimension over the new ones.
        view: The view of its only result.
    """
    if not is_recorded():
        return
    result = access_view(op.extents, shape_of(op.outputs[0]), op.output_accesses[0])
    entered = access_view(space, op.extents, old_dims)
    claim(op.op, [entered, result], view, through=[access_view(space, view.shape, dims(len(view.shape)))])

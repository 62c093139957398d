"""What the choice of layouts knows of a function: tensors, and how operations access them. No IR.

A layout is an order of a tensor's dimensions: position i of memory holds dimension `order[i]`, the last position is
contiguous. Being a permutation makes it injective and bounded: each element has a place of its own, and as many places
as elements are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

from smartmem_mlir.index_maps.expr import Dim, Expr
from smartmem_mlir.index_maps.view import View

Order: TypeAlias = tuple[int, ...]
Access: TypeAlias = tuple[Expr, ...]


def identity_order(rank: int) -> Order:
    """Row-major: the order in which the dimensions are written."""
    return tuple(range(rank))


def check_order(order: Order, rank: int) -> None:
    """Refuses what is no permutation: such a layout would replicate elements or reach beyond the tensor.

    Raises:
        ValueError: `order` is not a permutation of the tensor's dimensions.
    """
    if sorted(order) != list(range(rank)):
        raise ValueError(f"{order} is not an order of {rank} dimensions")


@dataclass(frozen=True)
class Tensor:
    """A value of the function.

    Args:
        name: For people: the source node that computes it.
        shape: Its extents.
        element_bytes: Bytes of one element.
        pinned: Whether its order is given: arguments, and results of operations that take no other.
        constant: Whether its elements are known at compile time, so that they can be stored in any order for nothing.
        internal: Whether it exists only inside a kernel (scores of an attention), so that its order costs nothing.
    """

    name: str
    shape: tuple[int, ...]
    element_bytes: int
    pinned: bool = False
    constant: bool = False
    internal: bool = False

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return prod(self.shape)


@dataclass(frozen=True)
class Use:
    """A tensor accessed by an operation.

    Args:
        tensor: Its number in the graph.
        access: Its coordinates over the operation's dimensions.
    """

    tensor: int
    access: Access

    @cached_property
    def dims(self) -> frozenset[int]:
        """Dimensions of the operation that the coordinates depend on."""
        return frozenset().union(*(expr.dims for expr in self.access), ())


@dataclass(frozen=True)
class Loops:
    """A structured operation.

    Args:
        name: For people.
        extents: Its iteration space.
        reductions: Which of its dimensions are reduced.
        inputs: What it reads; scalars are left out.
        outputs: What it writes.
        starts: For each output, the tensor whose elements it starts from, None where it starts from one number.
        contraction: Whether it sums products of its first two inputs.
        has_kernel: Whether the body is one that kernel generators take.
        attention: Whether it is part of an attention, whose kernel takes its operands in any order.
    """

    name: str
    extents: tuple[int, ...]
    reductions: tuple[bool, ...]
    inputs: tuple[Use, ...]
    outputs: tuple[Use, ...]
    starts: tuple[int | None, ...]
    contraction: bool = False
    has_kernel: bool = False
    attention: bool = False

    @property
    def permutable(self) -> bool:
        """Whether each coordinate of each output is a dimension or constant, so that outputs may take any order."""
        return all(
            not expr.dims or isinstance(expr.single_atom, Dim) for output in self.outputs for expr in output.access
        )

    @property
    def tensors(self) -> tuple[int, ...]:
        """Every tensor that it touches, in order, with repetitions."""
        return tuple(use.tensor for use in (*self.inputs, *self.outputs))


@dataclass(frozen=True)
class Move:
    """A view.

    Args:
        name: For people.
        view: What it computes.
        sources: The tensors that its operands are.
        result: The tensor that it is.
    """

    name: str
    view: View
    sources: tuple[int, ...]
    result: int

    @property
    def tensors(self) -> tuple[int, ...]:
        """Every tensor that it touches."""
        return (*self.sources, self.result)


@dataclass(frozen=True)
class Opaque:
    """Any other operation, the function's return included: it reads tensors in the order they are written in.

    Args:
        name: For people.
        sources: The tensors that it reads.
    """

    name: str
    sources: tuple[int, ...]

    @property
    def tensors(self) -> tuple[int, ...]:
        """Every tensor that it touches."""
        return self.sources


Operation: TypeAlias = Loops | Move | Opaque


@dataclass(frozen=True)
class Graph:
    """A function.

    Args:
        tensors: Its values.
        operations: In program order.
    """

    tensors: tuple[Tensor, ...]
    operations: tuple[Operation, ...]

    @cached_property
    def readers(self) -> dict[int, tuple[Operation, ...]]:
        """The operations that read each tensor."""
        found: dict[int, list[Operation]] = {}
        for op in self.operations:
            read = op.sources if isinstance(op, Move | Opaque) else tuple(use.tensor for use in op.inputs)
            for tensor in dict.fromkeys(read):
                found.setdefault(tensor, []).append(op)
        return {tensor: tuple(ops) for tensor, ops in found.items()}

    @cached_property
    def writers(self) -> dict[int, Loops | Move]:
        """The operation that computes each tensor; arguments have none."""
        found: dict[int, Loops | Move] = {}
        for op in self.operations:
            if isinstance(op, Move):
                found[op.result] = op
            elif isinstance(op, Loops):
                found.update((use.tensor, op) for use in op.outputs)
        return found


def lane_candidates(op: Loops) -> list[int]:
    """Dimensions of a contraction's result that vectors can be filled along, the paper's choice last.

    Those of the second factor alone, in the order in which they are written; without any, those that both factors have
    at no offset of each other (depthwise convolution). Empty for other operations.
    """
    if not op.contraction or len(op.inputs) != 2:
        return []
    lhs, rhs = op.inputs
    written = [min(expr.dims) for expr in op.outputs[0].access if expr.dims]
    own = [d for d in written if d in rhs.dims and d not in lhs.dims]
    # A dimension that a factor reads at an offset of another (a tap of a convolution) is no candidate.
    both = [d for d in written if d in rhs.dims and d in lhs.dims and _is_plain(lhs.access, d)]
    return own or both


def _is_plain(access: Access, d: int) -> bool:
    return any(isinstance(expr.single_atom, Dim) and min(expr.dims) == d for expr in access)

"""Seconds from bytes: what each operation costs under each combination of its tensors' orders.

An operation's loops follow its first result, whose contiguous dimension fills vectors. What it reads or writes at
stride 1 (or 0) along that dimension streams through whole cache lines; anything else is paid by the element. A
contraction runs at the rate of a generated kernel where some dimension has adjacent lanes in everything that needs them
(see `kernels.cpu.plan`), and at IREE's otherwise. A view costs nothing where it moves no element or a kernel takes it
over into its addresses, and a copy elsewhere. Constants are stored as they are read, at compile time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from math import ceil, prod

from smartmem_mlir.index_maps.expr import Dim
from smartmem_mlir.layouts.graph import Graph, Loops, Move, Opaque, Order, Tensor, Use, identity_order
from smartmem_mlir.layouts.problem import Problem, Term, Variable
from smartmem_mlir.layouts.propagation import leading_dim
from smartmem_mlir.layouts.rates import Rates
from smartmem_mlir.layouts.strides import is_linear, walk

TILE_ROWS = 8
"""Rows that a generated kernel computes together, about."""


def price(graph: Graph, variables: Sequence[Variable], rates: Rates) -> Problem:
    """The problem of choosing among candidates.

    Args:
        graph: The function.
        variables: Candidates of each of its tensors.
        rates: The target.
    """
    return Problem(tuple(variables), tuple(_Pricing(graph, variables, rates).terms()))


class _Pricing:
    def __init__(self, graph: Graph, variables: Sequence[Variable], rates: Rates) -> None:
        self.graph = graph
        self.variables = variables
        self.rates = rates
        self._roots: dict[int, Loops | None] = {}

    def terms(self) -> Iterator[Term]:
        for op in self.graph.operations:
            if isinstance(op, Move):
                yield from self._move(op)
            elif isinstance(op, Loops):
                yield from self._contraction(op) if op.contraction else self._loops(op)
        yield from self._restored()

    def _term(self, name: str, what: str, tensors: Sequence[int], cost: Callable[[dict[int, Order]], float]) -> Term:
        chosen = sorted(set(tensors))
        combinations = product(*(self.variables[tensor].orders for tensor in chosen))
        costs = [round(cost(dict(zip(chosen, orders, strict=True)))) for orders in combinations]
        return Term(name, what, tuple(chosen), tuple(costs))

    # Structured operations.

    def _loops(self, op: Loops) -> Iterator[Term]:
        first = op.outputs[0]
        for use in op.inputs:
            yield self._term(op.name, "read", (use.tensor, first.tensor), partial(self._access_ns, op, use))
        for use in op.outputs:
            yield self._term(op.name, "write", (use.tensor, first.tensor), partial(self._access_ns, op, use))
        yield from self._starts(op)

    def _access_ns(self, op: Loops, use: Use, orders: dict[int, Order]) -> float:
        tensor = self.graph.tensors[use.tensor]
        first = op.outputs[0]
        lane = self._contiguous_dim(op, first, orders[first.tensor])
        inner = _inner_dims(op, first, orders[first.tensor])
        walked = walk(use.access, tensor.shape, orders[use.tensor], op.extents, inner)
        elements = min(tensor.elements, prod(op.extents[d] for d in use.dims))
        summed_in_a_row = any(
            reduced and walked.strides[d] == 1 and op.extents[d] > 1 for d, reduced in enumerate(op.reductions)
        )
        if lane is None or walked.strides[lane] in (0, 1) or summed_in_a_row:
            return self._stream_ns(tensor, elements, elements)
        root = self._root(first.tensor)
        return elements * self.rates.strided_element_ns + (self._lost_ns(root) if root is not None else 0.0)

    def _contiguous_dim(self, op: Loops, use: Use, order: Order) -> int | None:
        """The dimension along which a tensor is contiguous; axes of one element count for nothing."""
        shape = self.graph.tensors[use.tensor].shape
        for axis in reversed(order):
            if shape[axis] > 1:
                return leading_dim(use.access[axis])
        return None

    def _starts(self, op: Loops) -> Iterator[Term]:
        for use, start in zip(op.outputs, op.starts, strict=True):
            if start is not None:
                yield self._term(op.name, "start", (use.tensor, start), partial(self._start_ns, use.tensor, start))

    def _start_ns(self, result: int, start: int, orders: dict[int, Order]) -> float:
        return 0.0 if orders[result] == orders[start] else self._copy_ns(self.graph.tensors[result])

    # Contractions.

    def _contraction(self, op: Loops) -> Iterator[Term]:
        touched = [use.tensor for use in (*op.inputs[:2], op.outputs[0])]
        if op.attention:
            # Its kernel takes operands in any order.
            yield Term(op.name, "kernel", (), (round(prod(op.extents) / self.rates.kernel_macs_per_ns),))
        else:
            yield self._term(op.name, "kernel", touched, partial(self._kernel_ns, op))
        for use in (*op.inputs, op.outputs[0]):
            tensor = self.graph.tensors[use.tensor]
            if not tensor.constant:
                what = "read" if use in op.inputs else "write"
                yield self._term(op.name, what, (use.tensor,), partial(self._touched_ns, op, use))
        yield from self._starts(op)

    def _kernel_ns(self, op: Loops, orders: dict[int, Order]) -> float:
        work = prod(op.extents)
        rates = self.rates
        best = work / self._fallback_rate(op)
        if not op.has_kernel:
            return best
        strides = [
            walk(use.access, self.graph.tensors[use.tensor].shape, orders[use.tensor], op.extents, ()).strides
            for use in (*op.inputs[:2], op.outputs[0])
        ]
        for vectors, other in ((1, 0), (0, 1)):
            # A constant second factor is packed.
            packed = vectors == 1 and self.graph.tensors[op.inputs[1].tensor].constant
            for lane, reduced in enumerate(op.reductions):
                if reduced or op.extents[lane] == 1 or lane not in op.inputs[vectors].dims:
                    continue
                adjacent = (packed or strides[vectors][lane] == 1) and strides[2][lane] == 1
                if adjacent and strides[other][lane] in (0, 1):
                    # Each vector that is loaded serves the rows of a tile, if there are any.
                    rows = prod(
                        op.extents[d]
                        for d, summed in enumerate(op.reductions)
                        if not summed and d not in op.inputs[vectors].dims
                    )
                    most = rates.kernel_macs_per_ns if packed else rates.unpacked_kernel_macs_per_ns
                    rate = min(most, rows * rates.vector_product_macs_per_ns)
                    filled = op.extents[lane] / (ceil(op.extents[lane] / rates.vector_lanes) * rates.vector_lanes)
                    best = min(best, work / (rate * filled))
        return best

    def _fallback_rate(self, op: Loops) -> float:
        windows = any(expr.dims and not isinstance(expr.single_atom, Dim) for use in op.inputs for expr in use.access)
        return self.rates.fallback_window_macs_per_ns if windows else self.rates.fallback_matmul_macs_per_ns

    def _touched_ns(self, op: Loops, use: Use, orders: dict[int, Order]) -> float:
        """Cache lines that a kernel touches: where it steps from line to line, a tile of rows shares each of them."""
        tensor, order = self.graph.tensors[use.tensor], orders[use.tensor]
        strides = walk(use.access, tensor.shape, order, op.extents, ()).strides
        near = (d for d, reduced in enumerate(op.reductions) if reduced or all(d in u.dims for u in op.inputs[:2]))
        streams = use not in op.inputs[:1] or any(strides[d] == 1 for d in near)
        return self._stream_ns(tensor, tensor.elements, tensor.elements if streams else TILE_ROWS)

    # Views and copies.

    def _move(self, move: Move) -> Iterator[Term]:
        absorbed = self._is_absorbed(move)
        for number, source in enumerate(move.sources):
            if not self.graph.tensors[source].constant:
                yield self._term(
                    move.name, "view", (source, move.result), partial(self._view_ns, move, number, absorbed)
                )

    def _view_ns(self, move: Move, number: int, absorbed: bool, orders: dict[int, Order]) -> float:
        tensor = self.graph.tensors[move.sources[number]]
        source, result = orders[move.sources[number]], orders[move.result]
        shape = move.view.shape
        total = 0.0
        for piece in move.view.pieces:
            if piece.source != number or not isinstance(piece.source, int):
                continue
            if is_linear(piece.exprs, tensor.shape, source, shape, result):
                total += 0.0 if absorbed or len(move.view.pieces) == 1 else self._stream_ns(tensor, piece.box.volume, 1)
                continue
            inner = tuple(axis for axis in reversed(result) if shape[axis] > 1)
            walked = walk(piece.exprs, tensor.shape, source, shape, inner)
            volume = piece.box.volume
            if (inner and walked.strides[inner[0]] in (0, 1)) or walked.run >= self.rates.vector_lanes:
                total += 0.0 if absorbed else 2 * self._stream_ns(tensor, volume, walked.run)
            else:
                total += volume * self.rates.strided_element_ns
                root = self._root(move.sources[number]) if _has_border(move) else None
                # A border is written by the kernel that computes what it surrounds, whose lanes it then has to keep.
                total += self._lost_ns(root) if root is not None else 0.0
                total += 0.0 if absorbed else self._stream_ns(tensor, volume, volume)
        return total + (self.rates.kernel_launch_ns if total else 0.0)

    def _is_absorbed(self, move: Move) -> bool:
        """Whether a kernel of ours writes through the view, or each reader reads through it."""
        if len(move.sources) == 1 and self._root(move.sources[0]) is not None:
            return True
        readers = self.graph.readers.get(move.result, ())
        # A border is its producer's to write.
        return (
            not _has_border(move) and bool(readers) and all(isinstance(op, Loops) and op.has_kernel for op in readers)
        )

    def _root(self, tensor: int) -> Loops | None:
        """The contraction from whose sums a tensor is computed elementwise: one kernel does it all, if it is ours."""
        if tensor not in self._roots:
            op = self.graph.writers.get(tensor)
            found: Loops | None = None
            if isinstance(op, Move):
                found = self._root(op.sources[0]) if len(op.sources) == 1 else None
            elif op is not None and op.contraction:
                found = op if op.has_kernel and not op.attention else None
            elif op is not None and not any(op.reductions):
                roots = (self._root(use.tensor) for use in op.inputs)
                found = next((root for root in roots if root is not None), None)
                # What needs a reduction of the sums first (a normalisation) is another kernel.
                found = None if found is not None and self._waits_for_reduction(op, found) else found
            self._roots[tensor] = found
        return self._roots[tensor]

    def _waits_for_reduction(self, op: Loops, root: Loops) -> bool:
        """Whether an operation reads, perhaps through others, a reduction of what `root` computes."""
        result = root.outputs[0].tensor
        pending = [(use.tensor, False) for use in op.inputs]
        seen: set[tuple[int, bool]] = set()
        while pending:
            tensor, reduced = pending.pop()
            if tensor == result and reduced:
                return True
            writer = self.graph.writers.get(tensor)
            # Tensors are numbered in program order: what comes before the root does not depend on it.
            if writer is None or tensor <= result or (tensor, reduced) in seen:
                continue
            seen.add((tensor, reduced))
            reduces = reduced or (isinstance(writer, Loops) and any(writer.reductions))
            read = writer.sources if isinstance(writer, Move) else tuple(use.tensor for use in writer.inputs)
            pending += [(source, reduces) for source in read]
        return False

    def _lost_ns(self, root: Loops) -> float:
        """What it costs that a later operation of a kernel of ours has other lanes, so that IREE has to make it."""
        packed = self.graph.tensors[root.inputs[1].tensor].constant
        rate = self.rates.kernel_macs_per_ns if packed else self.rates.unpacked_kernel_macs_per_ns
        return max(0.0, prod(root.extents) * (1 / self._fallback_rate(root) - 1 / rate))

    def _restored(self) -> Iterator[Term]:
        """A copy of each tensor that something reads in the order as written, once for all such readers."""
        for tensor, readers in sorted(self.graph.readers.items()):
            asking = [op for op in readers if isinstance(op, Opaque)]
            if asking:
                yield self._term(asking[0].name, "copy", (tensor,), partial(self._restored_ns, tensor))

    def _restored_ns(self, tensor: int, orders: dict[int, Order]) -> float:
        return (
            0.0 if orders[tensor] == identity_order(len(orders[tensor])) else self._copy_ns(self.graph.tensors[tensor])
        )

    def _copy_ns(self, tensor: Tensor) -> float:
        """A kernel that puts a tensor into another order."""
        written = self._stream_ns(tensor, tensor.elements, tensor.elements)
        return self.rates.kernel_launch_ns + tensor.elements * self.rates.strided_element_ns + written

    def _stream_ns(self, tensor: Tensor, elements: int, run: int) -> float:
        """Reading or writing elements in runs, whole cache lines at a time."""
        run = max(1, min(run, elements))
        lines = elements / run * ceil(run * tensor.element_bytes / self.rates.cache_line_bytes)
        return lines * self.rates.cache_line_bytes / self.rates.stream_bytes_per_ns


def _has_border(move: Move) -> bool:
    return any(not isinstance(piece.source, int) for piece in move.view.pieces)


def _inner_dims(op: Loops, first: Use, order: Order) -> tuple[int, ...]:
    """The operation's dimensions from the innermost loop outwards: reduced ones, then as the first result has them."""
    reduced = [d for d in reversed(range(len(op.extents))) if op.reductions[d]]
    written = [d for axis in reversed(order) if (d := leading_dim(first.access[axis])) is not None]
    return tuple(dict.fromkeys([*reduced, *written]))

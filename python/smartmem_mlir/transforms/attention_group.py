"""Attention read as one kernel: softmax(scores) times values, where a contraction computes the scores.

What makes attention of a chain of operations is dependence and index maps: a contraction, elementwise operations on its
sums (scale, bias, mask), the maximum and the sum over the same dimensions, the keys, and a contraction that sums over
exactly these. How many dimensions batch, heads and windows take, in which order tensors hold them and through which
views they are read makes no difference. Dividing by the sum may come before or behind the second contraction. Every
tensor is addressed over one space, the first contraction's dimensions and after them those that only the values have.
The analysis changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from mlir import ir

from smartmem_mlir.index_maps.box import Box
from smartmem_mlir.index_maps.expr import Dim, Expr, dim
from smartmem_mlir.index_maps.simplify import simplify_exprs
from smartmem_mlir.transforms.access_folding import reads_index
from smartmem_mlir.transforms.contraction_group import (
    Growth,
    Read,
    Step,
    add_step,
    contraction_factors,
    initial_value,
    own_dims,
    placement,
    read_behind_views,
)
from smartmem_mlir.transforms.scalar_bodies import chain_of, is_nan_test, maximum_result, selected, sum_result
from smartmem_mlir.transforms.structured import StructuredOp, read_structured
from smartmem_mlir.transforms.view_ops import defining_op, is_view, splat_constant

MAXIMUM = -2
"""Number by which steps call the maximum of a row of scores."""
SUM = -1
"""Number by which steps call the sum of a row of weights."""


@dataclass(frozen=True)
class AttentionGroup:
    """A kernel that computes attention.

    Args:
        extents: The space: the dimensions of the scores' contraction, then those that only the values have.
        outer: Dimensions that choose a matrix of keys and values: batch, window, head.
        queries: Dimensions whose rows share keys and values.
        keys: Dimensions that the softmax normalises over.
        depth: Dimensions that a score sums over.
        values: Dimensions of a row of the result.
        query: First factor of a score.
        key: Second factor of a score.
        value: What the weights multiply.
        initial: What a score starts from: a number, or a tensor to read.
        scores: What is computed from the product (number 0) to get a score, in order.
        divided: Whether the weights are divided by their sum; if not, steps of the epilogue may do it.
        zero_if_undefined: Whether weights that are not a number count as 0: rows whose scores are all -inf.
        epilogue: What is computed from the weighted sum (number 0) and perhaps `SUM`.
        output: The value that the kernel computes and where each element of it is written.
        members: The operations that the kernel replaces, in program order.
    """

    extents: tuple[int, ...]
    outer: tuple[int, ...]
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    depth: tuple[int, ...]
    values: tuple[int, ...]
    query: Read
    key: Read
    value: Read
    initial: float | Read
    scores: tuple[Step, ...]
    divided: bool
    zero_if_undefined: bool
    epilogue: tuple[Step, ...]
    output: Read
    members: tuple[ir.Operation, ...]


class _Phase(Enum):
    """What the operations so far have computed."""

    SCORES = auto()
    MAXIMUM = auto()
    SHIFTED = auto()
    WEIGHTS = auto()
    OUTPUT = auto()


@dataclass
class AttentionReader:
    """Reads operations in program order; refuses those that have no place in the attention.

    Args:
        root: The contraction that computes scores.
        initial: What its sums start from.
        growth: Where scores and weights stand over the contraction's dimensions.
        members: What was taken.
        phase: How far it is.
        current: The value that the next operation must go on from.
        keys: Dimensions of the softmax, once there is one.
        scores: The steps up to the softmax.
        divided: Whether the weights were divided by their sum.
        guarded: Whether undefined weights were replaced by 0.
        undefined: For each comparison of weights with themselves, the weights.
        tail: Where everything behind the second contraction stands.
        value: The second contraction's other factor.
        weighing: The second contraction's dimensions over those of the group.
    """

    root: StructuredOp
    initial: float | Read
    growth: Growth
    members: list[ir.Operation]
    phase: _Phase = _Phase.SCORES
    current: ir.Value | None = None
    keys: frozenset[int] = frozenset()
    scores: tuple[Step, ...] = ()
    divided: bool = False
    guarded: bool = False
    undefined: dict[ir.Value, ir.Value] = field(default_factory=dict)
    tail: Growth | None = None
    value: Read | None = None
    weighing: tuple[Expr, ...] = ()

    @staticmethod
    def start(op: ir.Operation) -> AttentionReader | None:
        """A reader for attention that starts with this operation, None when it is no contraction."""
        root = read_structured(op)
        if root is None or contraction_factors(root) is None or reads_index(root):
            return None
        initial = initial_value(root)
        if initial is None:
            return None
        growth = Growth(Box.of(root.extents))
        growth.placed[op.results[0]] = simplify_exprs(root.output_accesses[0], growth.space)
        growth.number[op.results[0]] = 0
        return AttentionReader(root, initial, growth, [op], current=op.results[0])

    def add(self, op: ir.Operation) -> bool:
        """Takes the next operation; False, and nothing happens, when it has no place here."""
        taken = is_view(op) or self._softmax(op) or self._structured(op)
        if taken:
            self.members.append(op)
        return taken

    def group(self) -> AttentionGroup | None:
        """What was read; None when it is no attention yet."""
        # Asked after every operation that is taken, most of them before there is a second contraction.
        if self.tail is None or self.value is None or self.current is None:
            return None
        roles = self._roles()
        if roles is None:
            return None
        query, key = roles
        scores_rank = len(self.root.extents)
        shared = _dims(key.access) | _dims(self.value.access)
        rows = [d for d, reduced in enumerate(self.root.reductions) if not reduced and d not in self.keys]
        return AttentionGroup(
            extents=self.tail.space.extents,
            outer=tuple(d for d in rows if d in shared),
            queries=tuple(d for d in rows if d not in shared),
            keys=tuple(sorted(self.keys)),
            depth=tuple(d for d, reduced in enumerate(self.root.reductions) if reduced),
            values=tuple(range(scores_rank, len(self.tail.space.extents))),
            query=query,
            key=key,
            value=self.value,
            initial=self.initial,
            scores=self.scores,
            divided=self.divided,
            zero_if_undefined=self.guarded,
            epilogue=tuple(self.tail.steps),
            output=Read(self.current, self.tail.placed[self.current]),
            members=tuple(self.members),
        )

    def _roles(self) -> tuple[Read, Read] | None:
        """Query and key: the factor without keys and the one with all of them."""
        factors = contraction_factors(self.root)
        assert factors is not None
        reads = [
            read_behind_views(self.growth.space, self.root.inputs[i], self.root.input_accesses[i]) for i in factors
        ]
        first, second = (_dims(read.access) & self.keys for read in reads)
        if first and second:
            return None
        return (reads[1], reads[0]) if first else (reads[0], reads[1])

    def _structured(self, op: ir.Operation) -> bool:
        structured = read_structured(op)
        if structured is None:
            return False
        if structured.is_elementwise:
            return self._elementwise(structured)
        if structured.is_contraction:
            return self._weigh(structured)
        return self._reduce(structured)

    def _reduce(self, op: StructuredOp) -> bool:
        """The maximum of the scores or the sum of the weights, over the keys."""
        if len(op.inputs) != 1 or not self._is_current(op.inputs[0]):
            return False
        wanted = MAXIMUM if self.phase is _Phase.SCORES else SUM
        if wanted == SUM and (self.phase is not _Phase.WEIGHTS or self.divided or SUM in self.growth.number.values()):
            return False
        result = maximum_result(op) if wanted == MAXIMUM else sum_result(op)
        own = own_dims(self.growth, op)
        if result is None or own is None:
            return False
        reduced = _dims([expr for d, expr in enumerate(own) if op.reductions[d]])
        kept = _dims([expr for d, expr in enumerate(own) if not op.reductions[d]])
        if reduced & kept or (wanted == SUM and reduced != self.keys):
            return False
        access = op.output_accesses[result]
        value = op.op.results[result]
        self.growth.placed[value] = simplify_exprs([e.substitute(own) for e in access], self.growth.space)
        self.growth.number[value] = wanted
        if wanted == MAXIMUM:
            self.keys, self.phase, self.scores = reduced, _Phase.MAXIMUM, tuple(self.growth.steps)
        return True

    def _softmax(self, op: ir.Operation) -> bool:
        """The operation that is the whole softmax."""
        if op.name != "linalg.softmax" or self.phase is not _Phase.SCORES or not self._is_current(op.operands[0]):
            return False
        placed = placement(self.growth, op.operands[0])
        if placed is None:
            return False
        axis = int(op.attributes["dimension"].value)
        if placed[axis].dims & _dims([expr for d, expr in enumerate(placed) if d != axis]):
            return False
        self.keys, self.scores = placed[axis].dims, tuple(self.growth.steps)
        self.growth.placed[op.results[0]] = placed
        self._advance(op.results[0], _Phase.WEIGHTS)
        self.divided = True
        return True

    def _elementwise(self, op: StructuredOp) -> bool:
        growth = self.growth if self.tail is None else self.tail
        if self.phase is _Phase.WEIGHTS:
            return self._guard(op) or self._divide(op)
        before = len(growth.steps)
        if not _is_float(op.op.results[0]) or not add_step(growth, op):
            return False
        result, step = op.op.results[0], growth.steps[-1]
        phase: _Phase | None = self.phase
        if self.phase in (_Phase.MAXIMUM, _Phase.SHIFTED):
            wanted: dict[tuple[object, ...], _Phase] = {
                (_Phase.MAXIMUM, ("arith.subf",), ("current", MAXIMUM)): _Phase.SHIFTED,
                (_Phase.MAXIMUM, ("arith.subf", "math.exp"), ("current", MAXIMUM)): _Phase.WEIGHTS,
                (_Phase.SHIFTED, ("math.exp",), ("current",)): _Phase.WEIGHTS,
            }
            phase = wanted.get((self.phase, chain_of(step.body), _operands(step, self)))
        if phase is None:
            del growth.steps[before:], growth.placed[result], growth.number[result]
            return False
        self._advance(result, phase)
        return True

    def _advance(self, result: ir.Value, phase: _Phase) -> None:
        """Makes `result` the value to go on from."""
        growth = self.growth if self.tail is None else self.tail
        growth.number.setdefault(result, len(growth.steps))
        self.current, self.phase = result, phase

    def _divide(self, op: StructuredOp) -> bool:
        """Weights divided by their sum."""
        trial = Growth(self.growth.space, dict(self.growth.placed), dict(self.growth.number))
        if self.divided or not add_step(trial, op):
            return False
        step = trial.steps[-1]
        if chain_of(step.body) != ("arith.divf",) or _operands(step, self) != ("current", SUM):
            return False
        result = op.op.results[0]
        self.growth.placed[result] = trial.placed[result]
        self._advance(result, _Phase.WEIGHTS)
        self.divided = True
        return True

    def _guard(self, op: StructuredOp) -> bool:
        """`w != w ? 0 : w` in two operations: what some exporters add for rows that are masked altogether."""
        result = op.op.results[0]
        if not self.divided or self.current is None:
            return False
        if is_nan_test(op, self.current):
            self.undefined[result] = self.current
            return True
        choice = selected(op)
        if choice is None or self.undefined.get(choice[0]) != self.current or choice[2] != self.current:
            return False
        if splat_constant(choice[1]) != 0.0:
            return False
        own = own_dims(self.growth, op)
        if own is None:
            return False
        access = op.output_accesses[0]
        self.growth.placed[result] = simplify_exprs([e.substitute(own) for e in access], self.growth.space)
        self._advance(result, _Phase.WEIGHTS)
        self.guarded = True
        return True

    def _weigh(self, op: StructuredOp) -> bool:
        """The contraction of the weights with the values, over the keys."""
        factors = contraction_factors(op)
        if self.phase is not _Phase.WEIGHTS or factors is None or reads_index(op) or initial_value(op) != 0.0:
            return False
        ours = [i for i in factors if self._is_current(op.inputs[i])]
        if len(ours) != 1:
            return False
        (weights,) = ours
        other = factors[1 - factors.index(weights)]
        placed = placement(self.growth, op.inputs[weights])
        atoms = [expr.single_atom for expr in op.input_accesses[weights]]
        if placed is None or not all(isinstance(atom, Dim) for atom in atoms):
            return False
        of_weights = {atom.index: expr for atom, expr in zip(atoms, placed, strict=True) if isinstance(atom, Dim)}
        reduced = _dims([expr for d, expr in of_weights.items() if op.reductions[d]])
        kept = _dims([expr for d, expr in of_weights.items() if not op.reductions[d]])
        new = [d for d in range(len(op.extents)) if d not in of_weights]
        if reduced != self.keys or reduced & kept or any(op.reductions[d] for d in new):
            return False
        rank = len(self.root.extents)
        own: list[Expr] = [
            of_weights.get(d, dim(rank + new.index(d)) if d in new else dim(0)) for d in range(len(op.extents))
        ]
        space = Box.of((*self.root.extents, *(op.extents[d] for d in new)))
        access = simplify_exprs([e.substitute(own) for e in op.input_accesses[other]], space)
        value = read_behind_views(space, op.inputs[other], access)
        if value.value in self.growth.placed:
            return False
        self.value, self.weighing = value, tuple(own)
        sums = {v: self.growth.placed[v] for v, number in self.growth.number.items() if number == SUM}
        result = op.op.results[0]
        output = simplify_exprs([e.substitute(own) for e in op.output_accesses[0]], space)
        self.tail = Growth(space, {**sums, result: output}, {**dict.fromkeys(sums, SUM), result: 0})
        self._advance(result, _Phase.OUTPUT)
        return True

    def _is_current(self, value: ir.Value) -> bool:
        """Whether this is what was computed last, or a view of it."""
        while value != self.current:
            op = defining_op(value)
            if op is None or not is_view(op):
                return False
            value = op.operands[0]
        return True


def read_attention_group(members: Sequence[ir.Operation]) -> AttentionGroup | None:
    """Reads operations as one kernel.

    Args:
        members: The contraction that computes scores, then operations up to the result, in program order.

    Returns:
        None when they are no attention, or not all of them have a place in it.
    """
    reader = AttentionReader.start(members[0]) if members else None
    if reader is None or not all(reader.add(op) for op in members[1:]):
        return None
    return reader.group()


def _dims(access: Sequence[Expr]) -> frozenset[int]:
    return frozenset().union(*(expr.dims for expr in access), ())


def _is_float(value: ir.Value) -> bool:
    return isinstance(value.type.element_type, ir.F32Type)


def _is_argument(value: ir.Value) -> bool:
    return isinstance(value.owner, ir.Block)


def _operands(step: Step, reader: AttentionReader) -> tuple[object, ...]:
    """What the first operation of a step reads: "current", the number of another value of the group, or a read."""
    first = step.body.operations[0].operation
    found: list[object] = []
    for value in first.operands:
        number = ir.BlockArgument(value).arg_number if _is_argument(value) else len(step.arguments)
        argument = step.arguments[number] if number < len(step.arguments) else None
        is_current = reader.current is not None and argument == reader.growth.number[reader.current]
        found.append("current" if is_current else argument)
    return tuple(found)

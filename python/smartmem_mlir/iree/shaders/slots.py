"""Which thread touches which slot of memory that the threads of a workgroup share.

A workgroup is small and its extents are constants of the kernel, so an address is evaluated for every thread and every
iteration of the loops around it: nothing has to be proved about the expression. A condition around an access that
cannot be evaluated may hold for every thread. Workgroups work on tiles of their own, which are alike, so that the
first one, with the first of everything that is passed from outside, stands for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from smartmem_mlir.iree.shaders import module as spv
from smartmem_mlir.iree.shaders.flow import Flow
from smartmem_mlir.iree.shaders.module import Instruction, SpirvModule

# Threads times iterations that one expression is evaluated for at most.
_MOST_VALUES = 1 << 20

# Stands for the extent of arrays that have none.
_UNBOUNDED = 1 << 40

Extents = tuple[int, int, int]
Values = npt.NDArray[np.int64]

# Integers are those of SPIR-V with a sign, so these are right for unsigned operations where nothing is negative.
_SIGNED: dict[int, Callable[[Values, Values], Values]] = {
    spv.OP_I_ADD: np.add,
    spv.OP_I_SUB: np.subtract,
    spv.OP_I_MUL: np.multiply,
    spv.OP_LOGICAL_OR: np.logical_or,
    spv.OP_LOGICAL_AND: np.logical_and,
    spv.OP_I_EQUAL: np.equal,
    spv.OP_I_NOT_EQUAL: np.not_equal,
    spv.OP_S_GREATER_THAN: np.greater,
    spv.OP_S_GREATER_THAN_EQUAL: np.greater_equal,
    spv.OP_S_LESS_THAN: np.less,
    spv.OP_S_LESS_THAN_EQUAL: np.less_equal,
}
_UNSIGNED: dict[int, Callable[[Values, Values], Values]] = {
    spv.OP_U_DIV: np.floor_divide,
    spv.OP_U_MOD: np.remainder,
    spv.OP_U_GREATER_THAN: np.greater,
    spv.OP_U_GREATER_THAN_EQUAL: np.greater_equal,
    spv.OP_U_LESS_THAN: np.less,
    spv.OP_U_LESS_THAN_EQUAL: np.less_equal,
}


@dataclass(frozen=True)
class Touched:
    """Slots and the threads that may touch them.

    Args:
        slots: In ascending order, without repetition.
        lowest: For each, the lowest of its threads.
        highest: For each, the highest.
    """

    slots: Values
    lowest: Values
    highest: Values

    @classmethod
    def of(cls, slots: Values, threads: Values) -> Touched:
        """From pairs of slots and threads."""
        order = np.lexsort((threads, slots))
        slots, threads = slots[order], threads[order]
        found, first = np.unique(slots, return_index=True)
        last = np.append(first[1:], len(slots)) - 1
        return cls(found, threads[first], threads[last]) if len(slots) else cls(found, slots, slots)


@dataclass(frozen=True)
class SharedAccess:
    """An instruction that loads from memory of a workgroup, or of all, or stores to it.

    Args:
        position: Its index among the module's instructions.
        variable: The id of the variable.
        stores: Whether it writes.
        touched: Which thread may touch which slot; None for any. A slot is an element of the variable's array; the
            lanes of a vector are one slot.
        exact: Whether each thread of `touched` does touch its slots, rather than may.
        constant: Id of the constant that it writes, if it does: whoever writes it last, the slot holds the same.
    """

    position: int
    variable: int
    stores: bool
    touched: Touched | None
    exact: bool
    constant: int | None = None

    def meets(self, other: SharedAccess) -> bool:
        """Whether two threads may touch one slot, one by each access, and at least one of them changes it."""
        if self.variable != other.variable or not (self.stores or other.stores):
            return False
        if self.constant is not None and self.constant == other.constant:
            return False
        one, two = self.touched, other.touched
        if one is None or two is None:
            return True
        _, at, there = np.intersect1d(one.slots, two.slots, assume_unique=True, return_indices=True)
        lowest = np.minimum(one.lowest[at], two.lowest[there])
        return bool(np.any(lowest != np.maximum(one.highest[at], two.highest[there])))


def shared_accesses(flow: Flow, extents: Extents) -> list[SharedAccess]:
    """The accesses to workgroup memory and to buffers that the kernel writes, in the module's order.

    A pointer to workgroup memory that is used by anything but a load or a store counts as a store to any slot. In
    buffers, what happens at an address that cannot be evaluated is left out.

    Args:
        flow: The kernel.
        extents: Its workgroup size.
    """
    module = flow.module
    addresses = _Addresses(flow, extents)
    pointers: dict[int, tuple[int, tuple[int, ...]]] = {}
    workgroup: set[int] = set()
    accesses: list[SharedAccess] = []
    in_function = False
    for position, entry in enumerate(module.instructions):
        opcode, operands, _ = entry
        in_function |= opcode == spv.OP_FUNCTION
        if opcode == spv.OP_VARIABLE and operands[2] in (spv.STORAGE_WORKGROUP, spv.STORAGE_STORAGE_BUFFER):
            pointers[operands[1]] = (operands[1], ())
            workgroup |= {operands[1]} if operands[2] == spv.STORAGE_WORKGROUP else set()
        elif opcode in (spv.OP_ACCESS_CHAIN, spv.OP_IN_BOUNDS_ACCESS_CHAIN) and operands[2] in pointers:
            variable, indices = pointers[operands[2]]
            pointers[operands[1]] = (variable, indices + operands[3:])
        elif in_function:
            for pointer in pointers.keys() & set(spv.id_operands(entry)):
                loads = opcode == spv.OP_LOAD
                touched, exact, constant = None, False, None
                if loads or (opcode == spv.OP_STORE and operands[1] != pointer):
                    constant = None if loads else _constant(module, operands[1])
                    touched, exact = addresses.touched(*pointers[pointer], flow.home(position))
                variable = pointers[pointer][0]
                if touched is not None or variable in workgroup:
                    accesses.append(SharedAccess(position, variable, not loads, touched, exact, constant))
    # What is only read cannot race, and the stores of one block are those of one operation, unrolled.
    blocks: dict[int, set[int]] = {}
    for access in accesses:
        blocks.setdefault(access.variable, set()).add(flow.home(access.position))
    written = {access.variable for access in accesses if access.stores}
    return [
        access
        for access in accesses
        if access.variable in workgroup or (access.variable in written and len(blocks[access.variable]) > 1)
    ]


def _constant(module: SpirvModule, value: int) -> int | None:
    """The id of a value if it is a constant."""
    definition = module.definitions.get(value)
    is_constant = definition is not None and spv.OP_CONSTANT_TRUE <= definition.opcode <= spv.OP_CONSTANT_NULL
    return value if is_constant else None


class _UnknownValueError(Exception):
    """A value depends on something else than threads, constants and counted loops."""


class _Addresses:
    """Values of index expressions, [threads or 1, iterations of a loop or 1, ...]: an axis for each loop met."""

    def __init__(self, flow: Flow, extents: Extents) -> None:
        self._flow, self._module, self._extents = flow, flow.module, extents
        self._values: dict[int, Values] = {}
        self._from_outside: set[int] = set()
        self._loops = 0
        self._headers = _counted_loops(flow.module)

    def touched(self, variable: int, indices: tuple[int, ...], label: int) -> tuple[Touched | None, bool]:
        """Threads and slots, and whether that is exact.

        None if some index cannot be evaluated or the pointer is not to an element.
        """
        extents = self._extents_of(variable, len(indices))
        if extents is None:
            return None, False
        try:
            parts = [self._value(index) for index in indices[: len(extents)]]
        except _UnknownValueError:
            return None, False
        guards: list[Values] = []
        exact = True
        for condition, holds in self._flow.guards(label):
            try:
                value = self._value(condition)
            except _UnknownValueError:
                exact = False
                continue
            if condition in self._from_outside:
                exact = False
            else:
                guards.append((value != (0 if holds else 1)).astype(np.int64))
        values = _aligned([np.zeros(prod(self._extents), dtype=np.int64), *parts, *guards])
        # A loop that the address does not depend on does not matter, but that it is entered.
        idle = tuple(
            axis for axis in range(1, values[0].ndim) if all(part.shape[axis] == 1 for part in values[: 1 + len(parts)])
        )
        values[1 + len(parts) :] = [guard.max(axis=idle, keepdims=True) for guard in values[1 + len(parts) :]]
        shape = np.broadcast_shapes(*(value.shape for value in values))
        if prod(shape) > _MOST_VALUES:
            return None, False
        flat = values[0]
        for part, extent in zip(values[1 : 1 + len(parts)], extents, strict=True):
            flat = flat * extent + part
        slots = np.broadcast_to(flat, shape)
        # An access outside the array is undefined; that one is computed means that a guard keeps it from happening.
        happens = (slots >= 0) & (slots < prod(extents))
        for guard in values[1 + len(parts) :]:
            happens = happens & (guard != 0)
        return Touched.of(slots[happens], np.nonzero(happens)[0]), exact

    def _extents_of(self, variable: int, depth: int) -> tuple[int, ...] | None:
        """How many values each index has, down to the element; an index of a vector's lane has no extent."""
        definitions = self._module.definitions
        kind = definitions[definitions[definitions[variable].operands[0]].operands[2]]
        extents: list[int] = []
        while kind.opcode in (spv.OP_TYPE_STRUCT, spv.OP_TYPE_ARRAY, spv.OP_TYPE_RUNTIME_ARRAY):
            if kind.opcode == spv.OP_TYPE_STRUCT and len(kind.operands) != 2:
                return None
            if kind.opcode == spv.OP_TYPE_ARRAY:
                extents.append(int(definitions[kind.operands[2]].operands[2]))
            else:
                extents.append(1 if kind.opcode == spv.OP_TYPE_STRUCT else _UNBOUNDED)
            kind = definitions[kind.operands[1]]
        return tuple(extents) if extents and len(extents) <= depth else None

    def _value(self, value: int) -> Values:
        if value not in self._values:
            definition = self._module.definitions.get(value)
            if definition is None:
                raise _UnknownValueError
            result = self._evaluate(value, definition)
            if result.size > _MOST_VALUES:
                raise _UnknownValueError
            self._values[value] = result
        return self._values[value]

    def _evaluate(self, value: int, definition: Instruction) -> Values:
        opcode, operands, _ = definition
        axis = self._module.thread_components.get(value)
        if axis is not None:
            x, y, z = self._extents
            ids: Values = np.indices((z, y, x)).reshape(3, -1)[2 - axis]
            return ids
        if self._is_from_outside(definition):
            self._from_outside.add(value)
            return np.zeros(1, dtype=np.int64)
        if opcode == spv.OP_CONSTANT:
            return np.array([operands[2] - (operands[2] >> 31 << 32)], dtype=np.int64)
        if opcode in _SIGNED or opcode in _UNSIGNED:
            left, right = _aligned([self._value(operands[2]), self._value(operands[3])])
            if self._from_outside.intersection(operands[2:]):
                self._from_outside.add(value)
            if opcode in _SIGNED:
                return _SIGNED[opcode](left, right).astype(np.int64)
            if np.any(left < 0) or np.any(right < 0) or (opcode in (spv.OP_U_DIV, spv.OP_U_MOD) and np.any(right == 0)):
                raise _UnknownValueError
            return _UNSIGNED[opcode](left, right).astype(np.int64)
        if value in self._headers:
            iterations = self._iterations(*self._headers[value])
            if self._from_outside.intersection(self._headers[value]):
                self._from_outside.add(value)
            return iterations
        raise _UnknownValueError

    def _is_from_outside(self, definition: Instruction) -> bool:
        """Whether a value is a component of the workgroup's id, or a push constant."""
        definitions, builtins = self._module.definitions, self._module.builtins
        opcode, operands, _ = definition
        if opcode == spv.OP_COMPOSITE_EXTRACT:
            loaded = definitions[operands[2]]
            return loaded.opcode == spv.OP_LOAD and loaded.operands[2] == builtins.get(spv.BUILTIN_WORKGROUP_ID)
        if opcode != spv.OP_LOAD or definitions[operands[2]].opcode != spv.OP_ACCESS_CHAIN:
            return False
        variable = definitions[definitions[operands[2]].operands[2]]
        return variable.opcode == spv.OP_VARIABLE and variable.operands[2] == spv.STORAGE_PUSH_CONSTANT

    def _iterations(self, start: int, step: int, bound: int) -> Values:
        first, stride, end = self._value(start), self._value(step), self._value(bound)
        if stride.size != 1 or stride.flat[0] <= 0:
            raise _UnknownValueError
        # One more than there are iterations: what the counter is after the loop. In the loop its test is a guard.
        count = 1 + max(0, -(-(int(end.max()) - int(first.min())) // int(stride.flat[0])))
        if count > _MOST_VALUES:
            raise _UnknownValueError
        self._loops += 1
        steps: Values = (np.arange(count) * stride.flat[0]).reshape([1] * self._loops + [count])
        first, steps = _aligned([first, steps])
        return first + steps


def _counted_loops(module: SpirvModule) -> dict[int, tuple[int, int, int]]:
    """Loop counter -> ids of its first value, its step and its bound, where `i < bound` is what the loop tests."""
    tests = {
        entry.operands[1]: entry
        for entry in module.instructions
        if entry.opcode in (spv.OP_S_LESS_THAN, spv.OP_U_LESS_THAN)
    }
    loops: dict[int, tuple[int, int, int]] = {}
    counters: list[Instruction] = []
    merges = False
    for entry in module.instructions:
        if entry.opcode == spv.OP_LABEL:
            counters, merges = [], False
        elif entry.opcode == spv.OP_PHI and len(entry.operands) == 6:
            counters.append(entry)
        elif entry.opcode == spv.OP_LOOP_MERGE:
            merges = True
        elif entry.opcode == spv.OP_BRANCH_CONDITIONAL and merges and entry.operands[0] in tests:
            test = tests[entry.operands[0]]
            for counter in counters:
                _, result, first, _, second, _ = counter.operands
                for start, following in ((first, second), (second, first)):
                    addition = module.definitions.get(following)
                    if (
                        test.operands[2] == result
                        and addition is not None
                        and addition.opcode == spv.OP_I_ADD
                        and addition.operands[2] == result
                    ):
                        loops[result] = (start, addition.operands[3], test.operands[3])
    return loops


def _aligned(values: list[Values]) -> list[Values]:
    """The same values with the same number of axes: those of loops met later come last."""
    axes = max(value.ndim for value in values)
    return [value.reshape(value.shape + (1,) * (axes - value.ndim)) for value in values]

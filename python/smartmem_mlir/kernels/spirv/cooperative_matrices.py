"""Small matrices that a subgroup holds together: loaded, multiplied, and stored to workgroup memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mlir import ir
from mlir.dialects import arith, vector

from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.control import loop
from smartmem_mlir.kernels.spirv.cooperative_plan import BLOCK
from smartmem_mlir.kernels.spirv.limits import CooperativeMatrices
from smartmem_mlir.kernels.spirv.shader import Thread
from smartmem_mlir.kernels.spirv.storage import Blocks
from smartmem_mlir.kernels.spirv.vectors import WIDTH, splat, vector_type


@dataclass(frozen=True)
class MatrixMemory:
    """Where matrices of f16 are.

    Args:
        buffer: A buffer; None for workgroup memory.
        pitch: Blocks between a matrix's rows in memory.
        by_columns: Whether a row in memory is a column of the matrix.
    """

    buffer: Blocks | None
    pitch: int
    by_columns: bool = False


Side = Literal["A", "B"]
"""Left or right factor, as SPIR-V calls them."""


class MatrixUnit(ABC):
    """What multiplies.

    Args:
        matrices: Their extents.
        thread: The invocation.
        left: Where left factors are.
        right: Where right factors are.
    """

    def __init__(self, matrices: CooperativeMatrices, thread: Thread, left: MatrixMemory, right: MatrixMemory) -> None:
        self._matrices = matrices
        self._thread = thread
        self._memories: dict[Side, MatrixMemory] = {"A": left, "B": right}

    @property
    @abstractmethod
    def subgroup(self) -> ir.Value:
        """The number of the subgroup in its workgroup."""

    @abstractmethod
    def zero(self) -> list[ir.Value]:
        """A sum of nothing: values that a loop can carry."""

    @abstractmethod
    def load(self, side: Side, at: ir.Value) -> ir.Value:
        """The factor that begins with this block: a value that a loop can carry."""

    @abstractmethod
    def multiply_add(self, left: ir.Value, right: ir.Value, total: Sequence[ir.Value]) -> list[ir.Value]:
        """A sum plus a product of loaded factors."""

    @abstractmethod
    def store(self, total: Sequence[ir.Value], at: ir.Value, pitch: int) -> None:
        """Writes a sum to workgroup memory, from a vector of this number on, rows a pitch of vectors apart."""


class SubgroupUnit(MatrixUnit):
    """The device's cooperative matrices (SPV_KHR_cooperative_matrix)."""

    @property
    def subgroup(self) -> ir.Value:
        """As the device numbers it."""
        return self._thread.subgroup

    def zero(self) -> list[ir.Value]:
        """One matrix."""
        zero = _spirv("Constant", ir.F32Type.get(), [], value=ir.FloatAttr.get(ir.F32Type.get(), 0.0))
        return [_spirv("CompositeConstruct", self._type("Acc", "f32"), [zero])]

    def load(self, side: Side, at: ir.Value) -> ir.Value:
        """In registers."""
        memory = self._memories[side]
        pointer = self._thread.shared_pointer(at) if memory.buffer is None else memory.buffer.pointer(at)
        return _spirv(
            "KHR.CooperativeMatrixLoad",
            self._type(side, "f16"),
            [pointer, integers.constant(memory.pitch)],
            matrix_layout=_layout(memory.by_columns),
            **({"memory_operand": self._thread.shared_access} if memory.buffer is None else {}),
        )

    def multiply_add(self, left: ir.Value, right: ir.Value, total: Sequence[ir.Value]) -> list[ir.Value]:
        """One instruction."""
        return [_spirv("KHR.CooperativeMatrixMulAdd", total[0].type, [left, right, total[0]])]

    def store(self, total: Sequence[ir.Value], at: ir.Value, pitch: int) -> None:
        """All its threads together."""
        operands = [self._thread.shared_pointer(at), total[0], integers.constant(pitch)]
        attributes = {"matrix_layout": _layout(False), "memory_operand": self._thread.shared_access}
        ir.Operation.create("spirv.KHR.CooperativeMatrixStore", [], operands, attributes)

    def _type(self, use: str, element: str) -> ir.Type:
        each = self._matrices
        extents = {"A": (each.rows, each.terms), "B": (each.terms, each.lanes), "Acc": (each.rows, each.lanes)}
        rows, columns = extents[use]
        return ir.Type.parse(f"!spirv.coopmatrix<{rows}x{columns}x{element}, Subgroup, Matrix{use}>")


class ThreadUnit(MatrixUnit):
    """Ordinary instructions: each thread sums a part of a row. For devices without cooperative matrices, and slow."""

    @property
    def subgroup(self) -> ir.Value:
        """So many threads with successive numbers."""
        return integers.divide(self._thread.local, self._matrices.subgroup)

    def zero(self) -> list[ir.Value]:
        """The thread's vectors."""
        return [splat(0.0)] * (self._width // WIDTH)

    def load(self, side: Side, at: ir.Value) -> ir.Value:
        """Where it is, nothing more: it is left there."""
        return at

    def multiply_add(self, left: ir.Value, right: ir.Value, total: Sequence[ir.Value]) -> list[ir.Value]:
        """Term by term, in a loop: drivers of the CPU take long to compile what is written out."""
        row, lane = self._place()

        def add(term: ir.Value, sums: Sequence[ir.Value]) -> list[ir.Value]:
            factor = vector.broadcast(vector_type(), self._element("A", left, row, term))
            return [
                vector.fma(factor, self._lanes(right, term, integers.add(lane, WIDTH * i)), each)
                for i, each in enumerate(sums)
            ]

        return loop(self._matrices.terms, add, total)

    def store(self, total: Sequence[ir.Value], at: ir.Value, pitch: int) -> None:
        """Each thread its own."""
        row, lane = self._place()
        first = integers.add(integers.add(at, integers.scale(row, pitch)), integers.divide(lane, WIDTH))
        for i, part in enumerate(total):
            self._thread.share(integers.add(first, i), part)

    @property
    def _width(self) -> int:
        """Lanes of a thread."""
        return self._matrices.rows * self._matrices.lanes // self._matrices.subgroup

    def _place(self) -> tuple[ir.Value, ir.Value]:
        """The thread's row of a sum, and its first lane."""
        across = self._matrices.lanes // self._width
        number = integers.remainder(self._thread.local, self._matrices.subgroup)
        return integers.divide(number, across), integers.scale(integers.remainder(number, across), self._width)

    def _lanes(self, at: ir.Value, term: ir.Value, lane: ir.Value) -> ir.Value:
        """A vector of a right factor's row: from this lane on, a multiple of a vector's length."""
        if self._memories["B"].by_columns:
            elements = [self._element("B", at, term, integers.add(lane, each)) for each in range(WIDTH)]
            return vector.from_elements(vector_type(), elements)
        block = self._block("B", at, term, lane)
        word = integers.divide(integers.remainder(lane, BLOCK), 2)
        low, high = (_pair(block, integers.add(word, each)) for each in range(WIDTH // 2))
        return vector.shuffle(low, high, list(range(WIDTH)))

    def _element(self, side: Side, at: ir.Value, row: ir.Value, column: ir.Value) -> ir.Value:
        fast = row if self._memories[side].by_columns else column
        pair = _pair(self._block(side, at, row, column), integers.divide(integers.remainder(fast, BLOCK), 2))
        return _spirv("VectorExtractDynamic", ir.F32Type.get(), [pair, integers.remainder(fast, 2)])

    def _block(self, side: Side, at: ir.Value, row: ir.Value, column: ir.Value) -> ir.Value:
        """The block of a factor that holds an element."""
        memory = self._memories[side]
        slow, fast = (column, row) if memory.by_columns else (row, column)
        start = integers.add(at, integers.scale(slow, memory.pitch))
        number = integers.add(start, integers.divide(fast, BLOCK))
        return self._thread.shared(number) if memory.buffer is None else memory.buffer.load(number)


def matrix_unit(matrices: CooperativeMatrices, thread: Thread, left: MatrixMemory, right: MatrixMemory) -> MatrixUnit:
    """What multiplies on a device with these matrices; see :class:`MatrixUnit`."""
    return (ThreadUnit if matrices.emulated else SubgroupUnit)(matrices, thread, left, right)


def _pair(block: ir.Value, word: ir.Value) -> ir.Value:
    """The two f16 of one of a block's four words, as f32."""
    found = _spirv("VectorExtractDynamic", ir.F32Type.get(), [block, word])
    return _spirv("GL.UnpackHalf2x16", ir.VectorType.get([2], ir.F32Type.get()), [arith.bitcast(integers.i32(), found)])


def _layout(by_columns: bool) -> ir.Attribute:
    return ir.Attribute.parse(f"#spirv.coop_matrix_layout_khr<{'ColumnMajor' if by_columns else 'RowMajor'}>")


def _spirv(name: str, type_: ir.Type, operands: Sequence[ir.Value], **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(f"spirv.{name}", [type_], list(operands), attributes).results[0]

"""Small matrices that a subgroup holds together: loaded from buffers, multiplied, and stored to workgroup memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import vector

from smartmem_mlir.kernels.spirv import integers
from smartmem_mlir.kernels.spirv.limits import CooperativeMatrices
from smartmem_mlir.kernels.spirv.shader import Thread
from smartmem_mlir.kernels.spirv.storage import Elements
from smartmem_mlir.kernels.spirv.vectors import WIDTH, splat, vector_type


@dataclass(frozen=True)
class Matrix:
    """A matrix in a buffer.

    Args:
        memory: The buffer, of f16.
        at: Its first element.
        pitch: Elements between its rows in memory.
        by_columns: Whether a row in memory is a column of the matrix.
    """

    memory: Elements
    at: ir.Value
    pitch: int
    by_columns: bool


class MatrixUnit(ABC):
    """What multiplies.

    Args:
        matrices: Their extents.
        thread: The invocation.
    """

    def __init__(self, matrices: CooperativeMatrices, thread: Thread) -> None:
        self._matrices = matrices
        self._thread = thread

    @property
    @abstractmethod
    def subgroup(self) -> ir.Value:
        """The number of the subgroup in its workgroup."""

    @abstractmethod
    def zero(self) -> list[ir.Value]:
        """A sum of nothing: values that a loop can carry."""

    @abstractmethod
    def multiply_add(
        self, left: Sequence[Matrix], right: Sequence[Matrix], sums: Sequence[Sequence[ir.Value]]
    ) -> list[list[ir.Value]]:
        """Adds the product of each left matrix with each right one to its sum, the right ones counting faster."""

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

    def multiply_add(
        self, left: Sequence[Matrix], right: Sequence[Matrix], sums: Sequence[Sequence[ir.Value]]
    ) -> list[list[ir.Value]]:
        """Each matrix is loaded once."""
        lefts, rights = [self._load(each, "A") for each in left], [self._load(each, "B") for each in right]
        pairs = [(a, b) for a in lefts for b in rights]
        return [
            [_spirv("KHR.CooperativeMatrixMulAdd", total.type, [a, b, total])]
            for (a, b), (total,) in zip(pairs, sums, strict=True)
        ]

    def store(self, total: Sequence[ir.Value], at: ir.Value, pitch: int) -> None:
        """All its threads together."""
        operands = [self._thread.shared_pointer(at), total[0], integers.constant(pitch)]
        attributes = {"matrix_layout": _layout(False), "memory_operand": self._thread.shared_access}
        ir.Operation.create("spirv.KHR.CooperativeMatrixStore", [], operands, attributes)

    def _load(self, matrix: Matrix, use: str) -> ir.Value:
        return _spirv(
            "KHR.CooperativeMatrixLoad",
            self._type(use, "f16"),
            [matrix.memory.pointer(matrix.at), integers.constant(matrix.pitch)],
            matrix_layout=_layout(matrix.by_columns),
        )

    def _type(self, use: str, element: str) -> ir.Type:
        each = self._matrices
        rows, columns = {"A": (each.rows, each.terms), "B": (each.terms, each.lanes), "Acc": (each.rows, each.lanes)}[
            use
        ]
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

    def multiply_add(
        self, left: Sequence[Matrix], right: Sequence[Matrix], sums: Sequence[Sequence[ir.Value]]
    ) -> list[list[ir.Value]]:
        """Term by term."""
        pairs = [(a, b) for a in left for b in right]
        return [self._product(a, b, total) for (a, b), total in zip(pairs, sums, strict=True)]

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

    def _product(self, left: Matrix, right: Matrix, total: Sequence[ir.Value]) -> list[ir.Value]:
        row, lane = self._place()
        sums = list(total)
        for term in range(self._matrices.terms):
            number = integers.constant(term)
            factor = vector.broadcast(vector_type(), left.memory.load(_element(left, row, number)))
            for i in range(len(sums)):
                lanes = [integers.add(lane, WIDTH * i + each) for each in range(WIDTH)]
                other = right.memory.gather([_element(right, number, each) for each in lanes])
                sums[i] = vector.fma(factor, other, sums[i])
        return sums


def matrix_unit(matrices: CooperativeMatrices, thread: Thread) -> MatrixUnit:
    """What multiplies on a device with these matrices."""
    return (ThreadUnit if matrices.emulated else SubgroupUnit)(matrices, thread)


def _element(matrix: Matrix, row: ir.Value, column: ir.Value) -> ir.Value:
    slow, fast = (column, row) if matrix.by_columns else (row, column)
    return integers.add(integers.add(matrix.at, integers.scale(slow, matrix.pitch)), fast)


def _layout(by_columns: bool) -> ir.Attribute:
    return ir.Attribute.parse(f"#spirv.coop_matrix_layout_khr<{'ColumnMajor' if by_columns else 'RowMajor'}>")


def _spirv(name: str, type_: ir.Type, operands: Sequence[ir.Value], **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(f"spirv.{name}", [type_], list(operands), attributes).results[0]

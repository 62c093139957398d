"""Types of the generated bindings, for type checkers and editors."""

from collections.abc import Sequence
from typing import Any

import mlir.ir as ir

from smartmem_mlir._smartmem import LayoutAttr as LayoutAttr
from smartmem_mlir._smartmem import OpClassAttr as OpClassAttr
from smartmem_mlir._smartmem import PieceAttr as PieceAttr

OP_CLASS_ATTR: str

class ParameterOp(ir.OpView):  # type: ignore[misc]
    def __init__(self, result: ir.Type, key: str, *, loc: Any = None, ip: Any = None) -> None: ...
    @property
    def key(self) -> ir.StringAttr: ...
    @property
    def result(self) -> ir.Value: ...

class ViewOp(ir.OpView):  # type: ignore[misc]
    def __init__(
        self,
        result: ir.Type,
        sources: Sequence[ir.Value],
        pieces: Sequence[PieceAttr] | ir.ArrayAttr,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> None: ...
    @property
    def sources(self) -> ir.OpOperandList: ...
    @property
    def pieces(self) -> ir.ArrayAttr: ...
    @property
    def result(self) -> ir.Value: ...

class ConvertLayoutOp(ir.OpView):  # type: ignore[misc]
    def __init__(
        self,
        result: ir.Type,
        source: ir.Value,
        *,
        reason: str | ir.StringAttr | None = None,
        loc: Any = None,
        ip: Any = None,
    ) -> None: ...
    @property
    def source(self) -> ir.Value: ...
    @property
    def reason(self) -> ir.StringAttr | None: ...
    @property
    def result(self) -> ir.Value: ...

class GroupOp(ir.OpView):  # type: ignore[misc]
    def __init__(
        self, results_: Sequence[ir.Type], inputs: Sequence[ir.Value], *, loc: Any = None, ip: Any = None
    ) -> None: ...
    @property
    def inputs(self) -> ir.OpOperandList: ...
    @property
    def results_(self) -> ir.OpResultList: ...
    @property
    def body(self) -> ir.Region: ...

class YieldOp(ir.OpView):  # type: ignore[misc]
    def __init__(self, values: Sequence[ir.Value], *, loc: Any = None, ip: Any = None) -> None: ...
    @property
    def values(self) -> ir.OpOperandList: ...

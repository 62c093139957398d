"""What each kernel of an inference does, as far as a model of its time asks: arithmetic, bytes, and which memory.

The kernels are those of IREE's flow IR, where ours are SPIR-V or loops over memory and IREE's own are operations on
tensors. Arithmetic counts a multiplication and the addition of its result as one operation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

from mlir import ir

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.i1_text import pack_i1
from smartmem_mlir.iree.flow.read import summarize
from smartmem_mlir.iree.flow.summary import FlowSummary
from smartmem_mlir.iree.flow.traffic import loop_extents
from smartmem_mlir.iree.shaders.module import parse_module
from smartmem_mlir.iree.shaders.work import ShaderWork, count_work

_DATA = re.compile(r'data = dense<"0x([0-9A-Fa-f]+)">')
_SYMBOL = re.compile(r'\bsym_name = "([^"]+)"')
_FUNCTION = re.compile(r"\bfunction_ref = @(?:\"([^\"]+)\"|([\w$.]+))")
_PAIRED = {"arith.mulf": 0, "arith.addf": 1, "arith.subf": 1}
_SINGLE = frozenset({"arith.divf", "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf"})
_NAMED = {"linalg.softmax": 4}
"""Operations without a region -> arithmetic operations an element: a maximum, a difference, a sum, a division."""


@dataclass(frozen=True)
class KernelWork:
    """A kernel of one inference.

    Args:
        name: IREE's name of the entry point.
        calls: Launches.
        operations: Multiply-adds and other arithmetic of one launch, by the bits of the type that it is done in.
        least_bytes: What one launch has to read and write: each element once.
        issued_buffer_bytes: What its threads ask of buffers, None where the code is not made yet (IREE's kernels).
        issued_image_bytes: What its threads ask of images.
    """

    name: str
    calls: int
    operations: dict[int, int]
    least_bytes: int
    issued_buffer_bytes: int | None = None
    issued_image_bytes: int = 0


@dataclass(frozen=True)
class ModelWork:
    """One inference.

    Args:
        kernels: In order of first call.
        copies: Copies and fills outside kernels.
        copy_bytes: What those read and write.
    """

    kernels: tuple[KernelWork, ...]
    copies: int
    copy_bytes: int


def read_work(path: Path) -> ModelWork:
    """The work of a flow module.

    Args:
        path: Output of `iree-compile --compile-to=flow --mlir-print-op-generic`.

    Raises:
        CompilerError: The text is not IR that this version of MLIR reads, or a kernel of it cannot be counted.
    """
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(pack_i1(path.read_text()))
        except ir.MLIRError as error:
            raise CompilerError(f"IREE's flow IR does not parse in MLIR 22: {error}", file=path) from error
        return _work(module, summarize(module))


def _work(module: ir.Module, summary: FlowSummary) -> ModelWork:
    shaders: dict[str, ShaderWork] = {}
    bodies: dict[str, Counter[int]] = {}
    for op in module.body.operations:
        if op.operation.name == "hal.executable.source":
            shaders |= _shaders(op.operation)
        elif op.operation.name == "flow.executable":
            bodies |= _bodies(op.operation)
    kernels = []
    for kernel in summary.entries:
        shader = shaders.get(kernel.name)
        operations = shader.operations if shader is not None else dict(bodies[kernel.name])
        kernels.append(
            KernelWork(
                kernel.name,
                kernel.calls,
                operations,
                kernel.bytes_per_call,
                shader.buffer_bytes if shader is not None else None,
                shader.image_bytes if shader is not None else 0,
            )
        )
    return ModelWork(tuple(kernels), sum(copy.count for copy in summary.copies), summary.copy_bytes)


def _shaders(executable: ir.Operation) -> dict[str, ShaderWork]:
    """The work of the one shader of an executable, by its entry point."""
    head = executable.get_asm(skip_regions=True, print_generic_op_form=True, use_local_scope=True)
    data = _DATA.search(head)
    if data is None:
        return {}
    module = parse_module(bytes.fromhex(data[1]))
    for op in _walk(executable):
        if op.name == "hal.return" and len(op.operands) == 3:
            counts = [ir.IntegerAttr(_constant(value)).value for value in op.operands]
            return {module.name: count_work(module, counts)}
    raise CompilerError(f"the shader '{module.name}' does not say how many workgroups it wants")


def _constant(value: ir.Value) -> ir.Attribute:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        raise CompilerError("a shader whose number of workgroups depends on the data")
    return owner.operation.attributes["value"]


def _bodies(executable: ir.Operation) -> dict[str, Counter[int]]:
    """Arithmetic of each entry point of an executable of IREE's."""
    exports: dict[str, str] = {}
    functions: dict[str, Counter[int]] = {}
    for op in _walk(executable):
        if op.name == "flow.executable.export":
            head = op.get_asm(skip_regions=True, print_generic_op_form=True, use_local_scope=True)
            name, function = _SYMBOL.search(head), _FUNCTION.search(head)
            assert name is not None, "an export has a name"
            exports[name[1]] = (function[1] or function[2]) if function is not None else name[1]
        elif op.name == "func.func":
            functions[ir.StringAttr(op.attributes["sym_name"]).value] = _operations(op)
    return {name: functions.get(function, Counter()) for name, function in exports.items()}


def _operations(function: ir.Operation) -> Counter[int]:
    """Arithmetic of one launch, by bits."""
    total: Counter[int] = Counter()
    for op in _walk(function):
        if op.name in _NAMED:
            shape = ir.RankedTensorType(op.operands[0].type)
            total[_bits(shape.element_type)] += _NAMED[op.name] * prod(shape.shape)
        elif op.name.startswith("linalg.") and len(op.regions) == 1 and "indexing_maps" in op.attributes:
            per_point = _operations_of_a_point(op)
            points = prod(loop_extents(op) or ())
            for bits, count in per_point.items():
                total[bits] += count * points
        elif op.name.startswith("linalg.") and len(op.regions) == 1 and _operations_of_a_point(op):
            raise CompilerError(f"the loops of {op.name} are not known")
    return total


def _operations_of_a_point(op: ir.Operation) -> Counter[int]:
    """Arithmetic of one point of a structured operation, by bits: an addition pairs with a multiplication."""
    counts: dict[int, list[int]] = {}
    for inner in _walk(op):
        if inner.name in _PAIRED or inner.name in _SINGLE:
            pair = counts.setdefault(_bits(inner.results[0].type), [0, 0, 0])
            pair[_PAIRED.get(inner.name, 2)] += 1
    return Counter({bits: max(muls, adds) + others for bits, (muls, adds, others) in counts.items()})


def _bits(type_: ir.Type) -> int:
    return int(ir.FloatType(type_).width)


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(nested: ir.Operation) -> ir.WalkResult:
        found.append(nested)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return iter(found)

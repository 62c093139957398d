"""Reading IREE's flow IR: which kernels one inference launches, and which run once when the module is loaded.

The text is IREE's generic form, parsed by MLIR 22 with IREE's own dialects unregistered. The Python bindings do not
show the properties of unregistered operations, so the few symbol names that are needed are read from their one-line
print.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from mlir import ir

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.i1_text import pack_i1
from smartmem_mlir.iree.flow.images import check_images
from smartmem_mlir.iree.flow.movement import body_kind, computes_on_vectors
from smartmem_mlir.iree.flow.summary import Copy, FlowSummary, Kernel, KernelKind
from smartmem_mlir.iree.flow.traffic import body_traffic, tensor_bytes
from smartmem_mlir.kernels.executable import SCRATCH_ATTRIBUTE
from smartmem_mlir.kernels.spirv.metadata import COPY_STEM

_SYMBOL = r'@("(?:[^"\\]|\\.)*"|[\w$.-]+)'
_ENTRY_POINT = re.compile(rf"entry_points = \[{_SYMBOL}::{_SYMBOL}")
_SYM_NAME = re.compile(r'\bsym_name = ("(?:[^"\\]|\\.)*")')
_FUNCTION_REF = re.compile(rf"\bfunction_ref = {_SYMBOL}")

GENERATED = "stream.executable"
"""What holds a kernel that this project generates: its body is loops over memory, not operations on tensors."""

# Operations on whole tensors outside kernels: operand or result whose size is moved, and how often (read + write).
_COPIES = {
    "flow.tensor.clone": 2,
    "flow.tensor.transfer": 2,
    "flow.tensor.slice": 2,
    "flow.tensor.update": 2,
    "flow.tensor.splat": 1,
}


@dataclass
class _Calls:
    """What one scope (the inference, or loading) runs."""

    kernels: Counter[tuple[str, str]] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    copied_bytes: Counter[str] = field(default_factory=Counter)
    traffic: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    largest_binding_bytes: int = 0


def read_flow(path: Path) -> FlowSummary:
    """Count the kernels, copies and bytes of a flow module.

    Args:
        path: Output of `iree-compile --compile-to=flow --mlir-print-op-generic`.

    Raises:
        CompilerError: The text is not IR that this version of MLIR reads.
    """
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(pack_i1(path.read_text()))
        except ir.MLIRError as error:
            detail = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
            raise CompilerError(f"IREE's flow IR does not parse in MLIR 22: {detail}", file=path) from error
        return summarize(module)


def summarize(module: ir.Module) -> FlowSummary:
    """As :func:`read_flow`, on a module in memory."""
    bodies: dict[tuple[str, str], ir.Operation | None] = {}
    generated: dict[tuple[str, str], ir.Operation | None] = {}
    inference, loading = _Calls(), _Calls()
    for op in module.body.operations:
        name = op.operation.name
        if name in ("flow.executable", "hal.executable", "hal.executable.source"):
            bodies |= _executable_bodies(op.operation)
        elif name == GENERATED:
            generated |= _executable_bodies(op.operation)
        elif name == "util.initializer":
            _collect_calls(op.operation, loading)
        else:
            _collect_calls(op.operation, inference)
    kernels = {
        entry: _describe_generated(entry, generated[entry], inference.traffic | loading.traffic)
        if entry in generated
        else _describe(entry, bodies.get(entry), inference.traffic | loading.traffic)
        for entry in inference.kernels | loading.kernels
    }
    return FlowSummary(
        entries=_called(kernels, inference),
        copies=_copies(inference),
        load_entries=_called(kernels, loading),
        load_copies=_copies(loading),
        largest_binding_bytes=max(inference.largest_binding_bytes, loading.largest_binding_bytes),
        images=check_images(module),
    )


def _executable_bodies(executable: ir.Operation) -> dict[tuple[str, str], ir.Operation | None]:
    """The body of each entry point of an executable, None where there is only an object file."""
    exports: dict[str, str] = {}
    functions: dict[str, ir.Operation] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.endswith(".export"):
            head = _head(op)
            reference = _FUNCTION_REF.search(head)
            exports[_symbol_name(head)] = _unquote(reference[1]) if reference else _symbol_name(head)
        elif op.name == "func.func":
            functions[ir.StringAttr(op.attributes["sym_name"]).value] = op
        return ir.WalkResult.ADVANCE

    executable.walk(visit)
    name = _symbol_name(_head(executable))
    return {(name, entry): functions.get(function) for entry, function in exports.items()}


def _collect_calls(scope: ir.Operation, calls: _Calls) -> None:
    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "flow.dispatch":
            match = _ENTRY_POINT.search(_head(op))
            if match is None:
                raise CompilerError(f"a dispatch without an entry point in IREE's flow IR: {_head(op)[:200]}")
            entry = _unquote(match[1]), _unquote(match[2])
            calls.kernels[entry] += 1
            calls.traffic[entry] = sum(map(_bytes, op.operands)), sum(map(_bytes, op.results))
            calls.largest_binding_bytes = max(calls.largest_binding_bytes, *map(_bytes, [*op.operands, *op.results]))
        elif op.name in _COPIES:
            calls.copies[op.name] += 1
            calls.copied_bytes[op.name] += _copied_bytes(op)
        return ir.WalkResult.ADVANCE

    scope.walk(visit)


def _copied_bytes(op: ir.Operation) -> int:
    # An update moves the slice that it writes: the last tensor among its operands.
    if op.name == "flow.tensor.update":
        moved = [value for value in op.operands if isinstance(value.type, ir.RankedTensorType)][-1:]
    else:
        moved = list(op.results)
    return _COPIES[op.name] * sum(map(_bytes, moved))


def _bytes(value: ir.Value) -> int:
    """Size of a tensor; 0 for a scalar and for a size that is not known."""
    return (tensor_bytes(value.type) or 0) if isinstance(value.type, ir.RankedTensorType) else 0


def _describe(
    entry: tuple[str, str], body: ir.Operation | None, traffic: dict[tuple[str, str], tuple[int, int]]
) -> Kernel:
    if body is None:
        # A shader: it reads its operands and writes its results, each once.
        shader: KernelKind = "movement" if entry[1].startswith(COPY_STEM) else "extern"
        given, made = traffic[entry]
        return Kernel(name=entry[1], kind=shader, calls=0, read_bytes=given, written_bytes=made)
    read, written = body_traffic(body)
    return Kernel(name=entry[1], kind=body_kind(body), calls=0, read_bytes=read, written_bytes=written)


def _describe_generated(
    entry: tuple[str, str], body: ir.Operation | None, traffic: dict[tuple[str, str], tuple[int, int]]
) -> Kernel:
    """A kernel of ours: it reads its operands and writes its results, each once."""
    kind: KernelKind = "compute" if body is not None and computes_on_vectors(body) else "movement"
    read, written = traffic[entry]
    scratch = 0 if body is None else _scratch_bytes(body)
    return Kernel(
        name=entry[1],
        kind=kind,
        calls=0,
        read_bytes=read,
        written_bytes=written - scratch,
        scratch_bytes=scratch,
    )


def _scratch_bytes(body: ir.Operation) -> int:
    """Memory that a kernel of ours has for itself; its other results somebody may read."""
    if "arg_attrs" not in body.attributes:
        return 0
    marked = [SCRATCH_ATTRIBUTE in ir.DictAttr(attributes) for attributes in ir.ArrayAttr(body.attributes["arg_attrs"])]
    arguments = body.regions[0].blocks[0].arguments
    memories = [use.owner.results[0] for a, mark in zip(arguments, marked, strict=True) if mark for use in a.uses]
    return sum(prod(memory.type.shape) * memory.type.element_type.width // 8 for memory in memories)


def _called(kernels: dict[tuple[str, str], Kernel], calls: _Calls) -> tuple[Kernel, ...]:
    return tuple(kernels[entry].model_copy(update={"calls": count}) for entry, count in calls.kernels.items())


def _copies(calls: _Calls) -> tuple[Copy, ...]:
    return tuple(
        Copy(operation=operation, count=count, bytes=calls.copied_bytes[operation])
        for operation, count in sorted(calls.copies.items())
    )


def _head(op: ir.Operation) -> str:
    """The first line of an operation's print: its name, operands and properties."""
    return str(op.get_asm(skip_regions=True, print_generic_op_form=True, use_local_scope=True))


def _symbol_name(head: str) -> str:
    match = _SYM_NAME.search(head)
    if match is None:
        raise CompilerError(f"an executable without a name in IREE's flow IR: {head[:200]}")
    return _unquote(match[1])


def _unquote(symbol: str) -> str:
    return symbol[1:-1] if symbol.startswith('"') else symbol

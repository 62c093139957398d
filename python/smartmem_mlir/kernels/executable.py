"""A kernel as IREE takes it: a `stream.executable` with a body of ours and a `flow.dispatch` of it.

MLIR does not have IREE's dialects; their operations are built unregistered and are checked by iree-compile when it
parses them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod

from mlir import ir
from mlir.dialects import arith, func

from smartmem_mlir.transforms.view_ops import shape_of

Body = Callable[[Sequence[ir.Value], Sequence[ir.Value]], None]
"""Writes a kernel, given one flat memref per operand and result, and the workgroup's indices x, y."""


SCRATCH_ATTRIBUTE = "smartmem.scratch"
"""On an argument of a kernel's function: memory that the kernel has for itself, and nothing that anybody reads."""


def add_executable(
    module: ir.Block,
    name: str,
    tensors: Sequence[ir.Type],
    workgroups: tuple[int, int],
    body: Body,
    scratch: Collection[int] = (),
) -> None:
    """Adds an executable with one entry point of the same name at the start of the module.

    Args:
        module: The module's block.
        name: A symbol that is free.
        tensors: Types of what the kernel reads, then of what it writes.
        workgroups: How many workgroups run, along x and y.
        body: Writes the kernel.
        scratch: Positions of tensors that are scratch memory.
    """
    public, private = ir.StringAttr.get("public"), ir.StringAttr.get("private")
    symbol = ir.StringAttr.get(name)
    executable = ir.Operation.create(
        "stream.executable",
        attributes={"sym_name": symbol, "sym_visibility": private},
        regions=1,
        ip=ir.InsertionPoint.at_block_begin(module),
    )
    block = ir.Block.create_at_start(executable.regions[0], [])
    with ir.InsertionPoint(block):
        export = ir.Operation.create(
            "stream.executable.export",
            attributes={
                "sym_name": symbol,
                "sym_visibility": public,
                "function_ref": ir.FlatSymbolRefAttr.get(name),
            },
            regions=1,
        )
        _workgroup_count(export.regions[0], workgroups)
        inner = ir.Operation.create("builtin.module", regions=1)
        ir.Operation.create("stream.executable.end")
    with ir.InsertionPoint(ir.Block.create_at_start(inner.regions[0], [])):
        _function(name, tensors, body, scratch)


def dispatch(name: str, operands: Sequence[ir.Value], result: ir.Type) -> ir.Value:
    """Runs a kernel of one result at the insertion point."""
    return dispatch_several(name, operands, [result])[0]


def dispatch_several(name: str, operands: Sequence[ir.Value], results: Sequence[ir.Type]) -> list[ir.Value]:
    """Runs the kernel at the insertion point."""
    entry = ir.Attribute.parse(f"[@{name}::@{name}]")
    count = len(operands)
    op = ir.Operation.create(
        "flow.dispatch",
        results=list(results),
        operands=list(operands),
        attributes={
            "entry_points": entry,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, count, 0, 0]),
        },
    )
    return list(op.results)


def _workgroup_count(region: ir.Region, workgroups: tuple[int, int]) -> None:
    block = ir.Block.create_at_start(region, [])
    with ir.InsertionPoint(block):
        counts = [arith.constant(ir.IndexType.get(), count) for count in (*workgroups, 1)]
        ir.Operation.create("stream.return", operands=counts)


def _function(name: str, tensors: Sequence[ir.Type], body: Body, scratch: Collection[int]) -> None:
    index = ir.IndexType.get()
    binding = ir.Type.parse("!stream.binding")
    function = func.FuncOp(name, ir.FunctionType.get([binding] * len(tensors), []))
    if scratch:
        marks = [{SCRATCH_ATTRIBUTE: ir.UnitAttr.get()} if i in scratch else {} for i in range(len(tensors))]
        function.arg_attrs = [ir.DictAttr.get(mark) for mark in marks]
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
        zero = arith.constant(index, 0)
        buffers = []
        for argument, tensor in zip(block.arguments, tensors, strict=True):
            flat = ir.MemRefType.get([prod(tensor.shape)], tensor.element_type)
            subspan = ir.Operation.create("stream.binding.subspan", results=[flat], operands=[argument, zero])
            buffers.append(subspan.results[0])
        ids = [
            ir.Operation.create(
                "stream.dispatch.workgroup.id",
                results=[index],
                attributes={"dimension": ir.IntegerAttr.get(index, axis)},
            ).results[0]
            for axis in range(2)
        ]
        body(buffers, ids)
        func.ReturnOp([])


def shape_text(value: ir.Value) -> str:
    """A tensor's shape as part of a symbol."""
    return "x".join(map(str, shape_of(value)))

"""A shader as IREE takes it: a `hal.executable.source` that holds its binary, dispatched by `flow.dispatch`.

IREE schedules it, plans its memory and puts barriers around it as for kernels of its own. Its operations are built
unregistered, and iree-compile checks them.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

DEFAULT_TARGET = '#hal.executable.target<"vulkan-spirv", "vulkan-spirv-fb">'


def add_shader(
    module: ir.Block, name: str, binary: bytes, reads: int, workgroups: tuple[int, int], target: str
) -> None:
    """Adds an executable with one entry point of the same name at the start of the module.

    Args:
        module: The module's block.
        name: A symbol that is free.
        binary: SPIR-V.
        reads: Tensors that the shader reads: its first bindings. The next one is what it writes.
        workgroups: How many workgroups run, along x and y.
        target: The `#hal.executable.target` that the module is compiled for.
    """
    symbol = ir.StringAttr.get(name)
    data = f'dense<"0x{binary.hex().upper()}"> : vector<{len(binary)}xi8>'
    objects = (
        f'#hal.executable.objects<{{{target} = [#hal.executable.object<{{path = "{name}.spv", data = {data}}}>]}}>'
    )
    executable = ir.Operation.create(
        "hal.executable.source",
        attributes={
            "sym_name": symbol,
            "sym_visibility": ir.StringAttr.get("private"),
            "objects": ir.Attribute.parse(objects),
        },
        regions=1,
        ip=ir.InsertionPoint.at_block_begin(module),
    )
    bindings = ["#hal.pipeline.binding<storage_buffer, ReadOnly>"] * reads + ["#hal.pipeline.binding<storage_buffer>"]
    layout = f"#hal.pipeline.layout<bindings = [{', '.join(bindings)}]>"
    with ir.InsertionPoint(ir.Block.create_at_start(executable.regions[0], [])):
        export = ir.Operation.create(
            "hal.executable.export",
            attributes={
                "sym_name": symbol,
                "sym_visibility": ir.StringAttr.get("public"),
                "ordinal": ir.IntegerAttr.get(ir.IndexType.get(), 0),
                "layout": ir.Attribute.parse(layout),
            },
            regions=2,
        )
        ir.Operation.create("hal.executable.source_end")
    device = ir.Type.parse("!hal.device")
    with ir.InsertionPoint(ir.Block.create_at_start(export.regions[0], [device])):
        counts = [arith.constant(ir.IndexType.get(), count) for count in (*workgroups, 1)]
        ir.Operation.create("hal.return", operands=counts)

"""Whether IREE left image tensors alone.

The texels of an image are not the bytes of the buffer that IREE knows. A slice, a copy or a kernel of IREE's that reads
such a tensor would read stale bytes; the image layer refuses some of these when they run, and this check all of them
when the module is compiled.
"""

from __future__ import annotations

import re

from mlir import ir

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.iree.flow.summary import ImageTraffic
from smartmem_mlir.iree.flow.traffic import tensor_bytes

_DISPATCH = "flow.dispatch"
_ENTRY = re.compile(r"entry_points = \[@(?:\"([^\"]+)\"|([\w$.]+))::")
_SYMBOL = re.compile(r'sym_name = "([^"]+)"')
_DATA = re.compile(r'dense<"0x([0-9A-Fa-f]+)">')
_IMAGE = re.compile(rb"smartmem\.image\.v1 set=0 binding=(\d+) w=")
"""An image has extents; a texel buffer, which has none, is the buffer's own bytes."""
_GLOBALS = ("util.global.load", "util.global.store")


def check_images(module: ir.Module) -> ImageTraffic | None:
    """Makes sure that image tensors flow from shaders to shaders only.

    Args:
        module: IREE's flow IR.

    Returns:
        What kernels access in images; None where no tensor is one.

    Raises:
        CompilerError: Something else makes or uses one.
    """
    bindings = {
        name: numbers for op in module.body.operations for name, numbers in _image_bindings(op.operation) if numbers
    }
    images: set[ir.Value] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == _DISPATCH:
            numbers = bindings.get(_entry(op), frozenset())
            values = [*op.operands, *op.results]
            images.update(values[number] for number in numbers)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for value in images:
        made = value.owner
        if isinstance(made, ir.Block) or made.operation.name not in (_DISPATCH, "util.global.load"):
            raise CompilerError(f"IREE makes an image tensor by {_name(made)}, which shaders must")
        if made.operation.name == _DISPATCH and not _writes_image(value, bindings):
            raise CompilerError("a kernel reads an image tensor that another writes into a buffer")
        for use in value.uses:
            if use.owner.operation.name not in (_DISPATCH, *_GLOBALS):
                raise CompilerError(f"IREE reads an image tensor by {use.owner.operation.name}, which only shaders can")
            if use.owner.operation.name == _DISPATCH and not _is_image(use, bindings):
                raise CompilerError("a kernel reads an image tensor from the buffer that it is not in")
    return _traffic(module, bindings, len(images)) if images else None


def _traffic(module: ir.Module, bindings: dict[str, frozenset[int]], tensors: int) -> ImageTraffic:
    total = {False: 0, True: 0}
    inside = {False: 0, True: 0}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "util.initializer":
            return ir.WalkResult.SKIP
        if op.name == _DISPATCH:
            numbers = bindings.get(_entry(op), frozenset())
            for number, value in enumerate([*op.operands, *op.results]):
                size = tensor_bytes(value.type) or 0 if isinstance(value.type, ir.RankedTensorType) else 0
                is_weight = not isinstance(value.owner, ir.Block) and value.owner.operation.name == "util.global.load"
                total[is_weight] += size
                inside[is_weight] += size if number in numbers else 0
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return ImageTraffic(
        tensors=tensors,
        activation_bytes=total[False],
        activation_image_bytes=inside[False],
        weight_bytes=total[True],
        weight_image_bytes=inside[True],
    )


def _image_bindings(executable: ir.Operation) -> list[tuple[str, frozenset[int]]]:
    """The bindings of an executable's shader that are images, by its name."""
    if executable.name not in ("hal.executable.source", "hal.executable"):
        return []
    head = _head(executable)
    name, data = _SYMBOL.search(head), _DATA.search(head)
    if name is None or data is None:
        return []
    return [(name[1], frozenset(int(number) for number in _IMAGE.findall(bytes.fromhex(data[1]))))]


def _is_image(use: ir.OpOperand, bindings: dict[str, frozenset[int]]) -> bool:
    return use.operand_number in bindings.get(_entry(use.owner.operation), frozenset())


def _writes_image(value: ir.Value, bindings: dict[str, frozenset[int]]) -> bool:
    """Whether the dispatch whose result a tensor is writes an image."""
    dispatch = value.owner.operation
    number = len(dispatch.operands) + ir.OpResult(value).result_number
    return number in bindings.get(_entry(dispatch), frozenset())


def _entry(dispatch: ir.Operation) -> str:
    """The executable that a dispatch runs."""
    match = _ENTRY.search(_head(dispatch))
    return (match[1] or match[2]) if match else ""


def _name(owner: ir.Block | ir.Operation) -> str:
    return "an argument of the model" if isinstance(owner, ir.Block) else str(owner.operation.name)


def _head(op: ir.Operation) -> str:
    return str(op.get_asm(skip_regions=True, print_generic_op_form=True, use_local_scope=True))

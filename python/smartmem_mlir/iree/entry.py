"""How a module's function gets memory for its results and intermediates.

By IREE's own convention a call allocates and frees them itself. On a GPU each of these is an operation of the queue
that waits for the one before it, by way of the host: three waits a call where one is enough. *In place*, the caller
passes the memory: a buffer for each result, in order, then one for all intermediates.
"""

from __future__ import annotations

from mlir.ir import (
    ArrayAttr,
    Block,
    DictAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    Location,
    Operation,
    Type,
    TypeAttr,
    UnitAttr,
)

from smartmem_mlir.iree.storage import OUTPUT, TRANSIENTS


def public_functions(body: Block) -> list[Operation]:
    """The `func.func` operations that a caller of the module can see."""
    functions = [op.operation for op in body.operations if op.operation.name == "func.func"]
    return [op for op in functions if "sym_visibility" not in op.attributes]


def take_storage(function: Operation) -> None:
    """Gives a `func.func` the arguments by which its caller passes memory."""
    function_type = FunctionType(TypeAttr(function.attributes["function_type"]).value)
    results = function_type.results
    index = IndexType.get()
    roles = [DictAttr.get({OUTPUT: IntegerAttr.get(index, number)}) for number in range(len(results))]
    roles.append(DictAttr.get({TRANSIENTS: UnitAttr.get()}))
    known = (
        list(ArrayAttr(function.attributes["arg_attrs"]))
        if "arg_attrs" in function.attributes
        else [DictAttr.get({}) for _ in function_type.inputs]
    )
    buffer = Type.parse("!hal.buffer")
    block: Block = function.regions[0].blocks[0]
    for _ in roles:
        block.add_argument(buffer, Location.unknown())
    inputs = [*function_type.inputs, *(buffer for _ in roles)]
    function.attributes["function_type"] = TypeAttr.get(FunctionType.get(inputs, results))
    function.attributes["arg_attrs"] = ArrayAttr.get([*known, *roles])

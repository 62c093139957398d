"""The operations of a module, in any dialect: imported, after a pass, as iree-compile reads it, IREE's flow IR.

Reads in a process of its own (`python -m smartmem_mlir.model_explorer.operations MODULE RESULT`), because MLIR's
assertions end the process.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir import ir

_LAYOUT = re.compile(r"#smartmem\.layout<(?P<map>.*), (?P<storage>\w+)(?:, pad = [^>]*)?>")
_MAX_TEXT = 400
"""Longer attributes are cut: some hold the values of constants."""


@dataclass
class Tensor:
    """A value between two operations.

    Args:
        type: As MLIR prints it.
        layout: Of its encoding; empty where there is none.
        storage: Of its layout; empty where there is none.
    """

    type: str
    layout: str = ""
    storage: str = ""


@dataclass
class Operation:
    """One operation.

    Args:
        id: Unique in its function.
        name: Its name in MLIR.
        within: Names of the operations around it, outermost first, without the function.
        nodes: Names of the source model's nodes in its location.
        attributes: Their names and texts.
        operands: For each operand the operation that computes it, and which of its results.
        results: Their types.
    """

    id: str
    name: str
    within: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    operands: list[tuple[str, int]] = field(default_factory=list)
    results: list[Tensor] = field(default_factory=list)


def read_functions(text: str) -> dict[str, list[Operation]]:
    """The operations of each function of a module, in order; bodies of kernels and of structured operations apart.

    Args:
        text: The module. Operations of dialects that MLIR 22 lacks have to be in generic form.

    Raises:
        ValueError: It does not parse.
    """
    from mlir import ir

    from smartmem_mlir.i1_text import pack_i1
    from smartmem_mlir.ir import make_context

    with make_context(allow_unregistered_dialects=True):
        try:
            module = ir.Module.parse(pack_i1(text))
        except ir.MLIRError as error:
            detail = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
            raise ValueError(f"the module does not parse in MLIR 22: {detail}") from error
        functions: dict[str, list[Operation]] = {}
        for function in module.body.operations:
            if function.operation.name in ("func.func", "util.func"):
                reader = _Reader()
                for region in function.operation.regions:
                    for block in region.blocks:
                        reader.read_block(block, ())
                if reader.operations:
                    functions[_symbol(function.operation, len(functions))] = reader.operations
        return functions


class _Reader:
    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._computed: dict[ir.Value, tuple[str, int]] = {}

    def read_block(self, block: ir.Block, within: tuple[str, ...]) -> None:
        for argument in block.arguments:
            # Arguments of a group are its operands; those of a function are nodes of their own.
            if argument not in self._computed:
                self._add("argument", [argument], within, _nodes(argument.location))
        for each in block.operations:
            self._read(each.operation, within)

    def _read(self, op: ir.Operation, within: tuple[str, ...]) -> None:
        if op.name == "smartmem.group":
            body = op.regions[0].blocks[0]
            for argument, operand in zip(body.arguments, op.operands, strict=True):
                if operand in self._computed:
                    self._computed[argument] = self._computed[operand]
            self.read_block(body, (*within, f"group {len(self.operations)}"))
            yielded = list(body.operations)[-1].operation
            for result, value in zip(op.results, yielded.operands, strict=True):
                if value in self._computed:
                    self._computed[result] = self._computed[value]
            return
        if op.name == "smartmem.yield":
            return
        made = self._add(op.name, list(op.results), within, _nodes(op.location))
        made.attributes = {name: _cut(str(op.attributes[name])) for name in op.attributes}
        made.operands = [self._computed[value] for value in op.operands if value in self._computed]

    def _add(self, name: str, results: list[ir.Value], within: tuple[str, ...], nodes: tuple[str, ...]) -> Operation:
        made = Operation(str(len(self.operations)), name, within, nodes)
        made.results = [_tensor(value) for value in results]
        self.operations.append(made)
        for position, value in enumerate(results):
            self._computed[value] = (made.id, position)
        return made


def _tensor(value: ir.Value) -> Tensor:
    text = str(value.type)
    match = _LAYOUT.search(text)
    return Tensor(text, match["map"], match["storage"]) if match else Tensor(text)


def _nodes(location: ir.Location) -> tuple[str, ...]:
    from smartmem_mlir.transforms.locations import node_names

    while location.is_a_callsite():
        location = location.callee
    return node_names(location)


def _symbol(function: ir.Operation, position: int) -> str:
    head = str(function.get_asm(skip_regions=True, print_generic_op_form=True, use_local_scope=True))
    match = re.search(r'\bsym_name = "([^"]*)"', head)
    return match[1] if match else f"function {position}"


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def main(module: str, result: str) -> int:
    """Read a file and write its functions as JSON; 1 with one line on stderr if it cannot be read."""
    try:
        functions = read_functions(Path(module).read_text())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    content = {name: [asdict(each) for each in operations] for name, operations in functions.items()}
    Path(result).write_text(json.dumps(content))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Graphs from MLIR: of the imported module, and of IREE's flow IR. Runs in a process of its own (`graph.worker`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mlir import ir

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.i1_text import pack_i1
from smartmem_mlir.ir import make_context
from smartmem_mlir.iree.flow.traffic import tensor_bytes
from smartmem_mlir.report.graph.model import Edge, Node
from smartmem_mlir.transforms.locations import node_names

_ENTRY_POINT = re.compile(r'entry_points = \[@(?:"[^"]*"|[\w$.-]+)::@(?P<entry>"[^"]*"|[\w$.-]+)')
_NAME = re.compile(r'\bname = "(?P<name>[^"]*)"')
_SYMBOL = re.compile(r'\bsym_name = "(?P<name>[^"]*)"')
_STORAGE = re.compile(r"#smartmem\.layout<.*, (?P<storage>\w+?)(?:, pad = [^>]*)?>")
_COPIES = frozenset({"flow.tensor.clone", "flow.tensor.slice", "flow.tensor.update", "flow.tensor.transfer"})
_WEIGHTS = frozenset({"util.global.load", "smartmem.parameter", "flow.tensor.constant"})
_NOTHING = frozenset({"tensor.empty", "linalg.fill", "arith.constant", "flow.tensor.splat", "flow.tensor.empty"})
"""Operations whose results hold no values of the model's tensors."""


@dataclass
class _Reader:
    """A graph while it is read; `origin` says which node a value comes from."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    origin: dict[ir.Value, int] = field(default_factory=dict)
    weights: dict[ir.Value, int] = field(default_factory=dict)

    def add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def read(self, number: int, values: Iterator[ir.Value]) -> None:
        """Edges to a node from those that compute its operands."""
        weight_bytes = 0
        for value in values:
            weight_bytes += self.weights.get(value, 0)
            source = self.origin.get(value)
            if source is not None and source != number:
                self.edges.append(_edge(source, number, value))
        if weight_bytes:
            node = self.nodes[number]
            self.nodes[number] = node.model_copy(update={"weight_bytes": node.weight_bytes + weight_bytes})

    def follow(self, op: ir.Operation) -> None:
        """An operation without a node: its results come from where its operands do."""
        if op.name in _WEIGHTS:
            self.weights |= {value: _bytes(value) for value in op.results if _is_tensor(value)}
            return
        if op.name in _NOTHING:
            return
        for known in (self.origin, self.weights):
            found = next((known[value] for value in op.operands if value in known), None)
            if found is not None:
                known.update(dict.fromkeys(op.results, found))
                return


def read_import(path: Path) -> tuple[list[Node], list[Edge]]:
    """The imported module: a node for each node of the source model.

    Operations of one name become one node. Those without a name are drawn as part of what they read.
    """
    with make_context(allow_unregistered_dialects=True):
        module = _parse(path)
        reader, by_name = _Reader(), dict[str, int]()
        for function in module.body.operations:
            if function.operation.name != "func.func":
                continue
            block = function.regions[0].blocks[0]
            for position, argument in enumerate(block.arguments):
                names = _names(argument.location)
                name = names[0] if names else f"input {position}"
                reader.origin[argument] = reader.add(Node(name=name, kind="input", label=name))
            for op in (each.operation for each in block.operations):
                if op.name == "func.return":
                    _add_outputs(reader, op)
                    continue
                names = _names(op.location)
                if op.name in _WEIGHTS or op.name in _NOTHING or not names:
                    reader.follow(op)
                    continue
                if names[0] not in by_name:
                    by_name[names[0]] = reader.add(
                        Node(name=names[0], kind="operator", label=names[0], sources=(names[0],))
                    )
                number = by_name[names[0]]
                reader.read(number, iter(op.operands))
                reader.origin |= dict.fromkeys(op.results, number)
        return reader.nodes, reader.edges


def read_flow_graph(path: Path) -> tuple[list[Node], list[Edge]]:
    """IREE's flow IR in generic form, with locations: a node for each kernel launch and each copy."""
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = _parse(path)
        computed = _computed_by_entry(module)
        reader = _Reader()
        for function in module.body.operations:
            if function.operation.name in ("util.func", "func.func"):
                for region in function.operation.regions:
                    for block in region.blocks:
                        for op in block.operations:
                            _read_flow_operation(reader, op.operation, computed)
        return reader.nodes, reader.edges


def _read_flow_operation(reader: _Reader, op: ir.Operation, computed: dict[str, tuple[str, ...]]) -> None:
    head = _head(op)
    if op.name == "flow.dispatch":
        match = _ENTRY_POINT.search(head)
        if match is None:
            raise CompilerError(f"a dispatch without an entry point in IREE's flow IR: {head[:200]}")
        entry = match["entry"].strip('"')
        sources = tuple(dict.fromkeys((*_names(op.location), *computed.get(entry, ()))))
        node = Node(name=entry, kind="kernel", label=sources[0] if sources else entry, sources=sources)
    elif op.name in _COPIES:
        names = _names(op.location)
        node = Node(name=op.name, kind="copy", label=names[0] if names else op.name, sources=names)
    elif op.name == "hal.tensor.import":
        name = _NAME.search(head)
        label = name["name"] if name else "input"
        reader.origin[op.results[0]] = reader.add(Node(name=label, kind="input", label=label))
        return
    elif op.name == "hal.tensor.export":
        name = _NAME.search(head)
        label = name["name"] if name else "output"
        reader.read(reader.add(Node(name=label, kind="output", label=label)), iter(op.operands))
        return
    else:
        reader.follow(op)
        return
    number = reader.add(node)
    reader.read(number, (value for value in op.operands if _is_tensor(value)))
    reader.origin |= dict.fromkeys(op.results, number)


def _computed_by_entry(module: ir.Module) -> dict[str, tuple[str, ...]]:
    """For each entry point the names of the source nodes in the body of its executable."""
    found: dict[str, tuple[str, ...]] = {}
    for executable in module.body.operations:
        if "executable" not in executable.operation.name:
            continue
        entries: list[str] = []
        names: dict[str, None] = {}

        def visit(op: ir.Operation, entries: list[str] = entries, names: dict[str, None] = names) -> ir.WalkResult:
            if op.name.endswith("executable.export") and (match := _SYMBOL.search(_head(op))) is not None:
                entries.append(match["name"])
            elif op.name.startswith("linalg."):
                names.update(dict.fromkeys(_names(op.location)))
            return ir.WalkResult.ADVANCE

        executable.operation.walk(visit)
        found |= dict.fromkeys(entries, tuple(names))
    return found


def _add_outputs(reader: _Reader, op: ir.Operation) -> None:
    for position, value in enumerate(op.operands):
        name = f"output {position}" if len(op.operands) > 1 else "output"
        reader.read(reader.add(Node(name=name, kind="output", label=name)), iter([value]))


def _names(location: ir.Location) -> tuple[str, ...]:
    while location.is_a_callsite():
        location = location.callee
    return tuple(name for name in node_names(location) if not name.startswith("graph:"))


def _edge(source: int, target: int, value: ir.Value) -> Edge:
    type = ir.RankedTensorType(value.type)
    layout = _STORAGE.search(str(type))
    return Edge(
        source=source,
        target=target,
        shape=tuple(type.shape),
        dtype=str(type.element_type),
        bytes=_bytes(value),
        storage=layout["storage"] if layout else "buffer",
    )


def _is_tensor(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _bytes(value: ir.Value) -> int:
    return (tensor_bytes(value.type) or 0) if _is_tensor(value) else 0


def _head(op: ir.Operation) -> str:
    return str(op.get_asm(skip_regions=True, print_generic_op_form=True, use_local_scope=True))


def _parse(path: Path) -> ir.Module:
    try:
        return ir.Module.parse(pack_i1(path.read_text()))
    except ir.MLIRError as error:
        detail = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
        raise CompilerError(f"the module does not parse in MLIR 22: {detail}", file=path) from error

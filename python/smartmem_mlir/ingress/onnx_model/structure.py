"""The graph's structure: names, definitions before uses, local functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import onnx
from google.protobuf.message import Message
from onnx import inliner

from smartmem_mlir.errors import InvalidModelError, UnsupportedModelError


def node_label(node: onnx.NodeProto) -> str:
    """How an error names a node: by its name, or by its first output if it has none, and its operator."""
    name = node.name or next((o for o in node.output if o), "")
    domain = f"{node.domain}." if node.domain and node.domain != "ai.onnx" else ""
    return f"{domain}{node.op_type} {name!r}"


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in a node's attributes (branches and bodies of control flow)."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def check_text(message: Message, file: Path | None) -> None:
    """Check that every string in a parsed model is text; protobuf lets any bytes pass.

    Raises:
        InvalidModelError: A string is not valid UTF-8.
    """
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_STRING:
            for text in value if descriptor.is_repeated else (value,):
                if not isinstance(text, str):
                    raise InvalidModelError(f"a {descriptor.name} is not text: {bytes(text[:20])!r}", file=file)
        elif descriptor.type == descriptor.TYPE_MESSAGE:
            for inner in value if descriptor.is_repeated else (value,):
                check_text(inner, file)


def check_names(graph: onnx.GraphProto, file: Path | None) -> None:
    """Check that every value is defined once.

    Raises:
        InvalidModelError: A name is missing or two inputs, initializers or node outputs share one.
        UnsupportedModelError: The graph has sparse initializers.
    """
    if graph.sparse_initializer:
        raise UnsupportedModelError(
            "sparse initializers are not supported", file=file, node=graph.sparse_initializer[0].values.name
        )
    inputs: set[str] = set()
    for value in graph.input:
        if not value.name or value.name in inputs:
            raise InvalidModelError("two inputs have the same name, or one has none", file=file, node=value.name)
        inputs.add(value.name)
    initializers: set[str] = set()
    for tensor in graph.initializer:
        if not tensor.name or tensor.name in initializers:
            raise InvalidModelError("two initializers have the same name, or one has none", file=file, node=tensor.name)
        initializers.add(tensor.name)
    defined = inputs | initializers
    for node in graph.node:
        for output in filter(None, node.output):
            if output in defined:
                raise InvalidModelError(f"value {output!r} is defined twice", file=file, node=node_label(node))
            defined.add(output)


def sort_nodes(graph: onnx.GraphProto, available: set[str], file: Path | None) -> None:
    """Put the nodes in topological order, keeping the file's order where it already is one.

    Args:
        graph: The graph; its nodes are reordered.
        available: Names that are defined outside the nodes.
        file: For errors.

    Raises:
        InvalidModelError: A node or output uses an undefined value, or the nodes form a cycle.
    """
    producer = {output: i for i, node in enumerate(graph.node) for output in node.output if output}
    for node in graph.node:
        for name in uses(node):
            if name not in producer and name not in available:
                raise InvalidModelError(f"input {name!r} is not defined", file=file, node=node_label(node))
    for output in graph.output:
        if output.name not in producer and output.name not in available:
            raise InvalidModelError("no node computes this output", file=file, node=output.name)
    needs = [{producer[n] for n in uses(node) if n in producer} for node in graph.node]
    if all(max(needed, default=-1) < i for i, needed in enumerate(needs)):
        return
    order = _topological_order(needs)
    if len(order) != len(needs):
        stuck = next(i for i in range(len(needs)) if i not in set(order))
        raise InvalidModelError("the graph has a cycle", file=file, node=node_label(graph.node[stuck]))
    nodes = [graph.node[i] for i in order]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _topological_order(needs: list[set[int]]) -> list[int]:
    users: list[list[int]] = [[] for _ in needs]
    for i, needed in enumerate(needs):
        for j in needed:
            users[j].append(i)
    missing = [len(needed) for needed in needs]
    ready = [i for i, count in enumerate(missing) if count == 0]
    order: list[int] = []
    while ready:
        i = ready.pop()
        order.append(i)
        for user in users[i]:
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    return order


def uses(node: onnx.NodeProto) -> set[str]:
    """The outer values that a node reads, also from within its subgraphs."""
    used = {name for name in node.input if name}
    for graph in subgraphs(node):
        used |= free_names(graph)
    return used


def free_names(graph: onnx.GraphProto) -> set[str]:
    """The names that a subgraph takes from the scopes around it."""
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    own |= {output for node in graph.node for output in node.output}
    used = {output.name for output in graph.output}
    for node in graph.node:
        used |= uses(node)
    return used - own


def live_nodes(nodes: Sequence[onnx.NodeProto], outputs: set[str]) -> list[onnx.NodeProto]:
    """The nodes that the outputs depend on, of nodes in topological order."""
    live = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        if live.intersection(node.output):
            kept.append(node)
            live |= uses(node)
    return kept[::-1]


def inline_functions(proto: onnx.ModelProto, file: Path | None) -> onnx.ModelProto:
    """Replace the calls of the model's own functions by their bodies.

    Raises:
        InvalidModelError: A function calls itself, or a call does not fit its function.
    """
    _check_recursion(proto, file)
    # The inliner parses the initializers again; only their names matter to it.
    slim = onnx.ModelProto()
    slim.CopyFrom(proto)
    for tensor in slim.graph.initializer:
        for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
            tensor.ClearField(field)
    try:
        inlined: onnx.ModelProto = inliner.inline_local_functions(slim)
    except Exception as error:  # the inliner raises bare RuntimeErrors for whatever it finds wrong
        raise InvalidModelError(f"cannot inline the model's functions: {error}", file=file) from error
    return inlined


def _check_recursion(proto: onnx.ModelProto, file: Path | None) -> None:
    functions = {(f.domain, f.name): f for f in proto.functions}
    if len(functions) != len(proto.functions):
        raise InvalidModelError("two local functions have the same name", file=file)
    finished: set[tuple[str, str]] = set()

    def visit(key: tuple[str, str], callers: tuple[tuple[str, str], ...]) -> None:
        if key in callers:
            raise InvalidModelError("a local function calls itself", file=file, node=".".join(key))
        if key in finished or key not in functions:
            return
        for node in _all_nodes(functions[key].node):
            visit((node.domain, node.op_type), (*callers, key))
        finished.add(key)

    for key in functions:
        visit(key, ())


def _all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from _all_nodes(graph.node)

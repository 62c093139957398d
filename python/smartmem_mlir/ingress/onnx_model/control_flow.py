"""`If` with a condition that is known at import."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import onnx

from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.ingress.onnx_model import structure
from smartmem_mlir.ingress.onnx_model.attributes import attribute
from smartmem_mlir.ingress.onnx_model.reader import inline_values
from smartmem_mlir.ingress.onnx_model.tensors import check_dims, numpy_type

if TYPE_CHECKING:
    from smartmem_mlir.ingress.onnx_model.specialize import Specializer


def inline_branch(graph: Specializer, node: onnx.NodeProto) -> None:
    """Walk the nodes of the branch that an `If` takes in its place, or refuse it if that is not known."""
    condition = graph.constant(node.input[0]) if node.input else None
    if condition is None:
        graph.refuse(node, "its condition is only known when the model runs")
        return
    if condition.size != 1:
        raise InvalidModelError("the condition is not a scalar", file=graph.file, node=structure.node_label(node))
    branch = attribute(node, "then_branch" if bool(condition.item()) else "else_branch")
    if not isinstance(branch, onnx.GraphProto) or len(branch.output) != len(node.output):
        raise InvalidModelError("the branch does not fit the If", file=graph.file, node=structure.node_label(node))
    for output, inner in zip(node.output, walk_graph(graph, branch, []), strict=True):
        graph.bind(output, inner)


def walk_graph(graph: Specializer, subgraph: onnx.GraphProto, operands: Sequence[str]) -> list[str]:
    """Walk a subgraph's nodes in place of the node that has it.

    Args:
        graph: The walk.
        subgraph: A branch or body; it may use values of the graphs around it.
        operands: What stands for its inputs.

    Returns:
        What stands for its outputs.
    """
    structure.check_names(subgraph, graph.file)
    inputs = {value.name for value in subgraph.input}
    outer = structure.free_names(subgraph)
    structure.sort_nodes(subgraph, outer | inputs | {t.name for t in subgraph.initializer}, graph.file)
    rename = {name: graph.resolve(name) for name in outer}
    rename.update(zip((value.name for value in subgraph.input), operands, strict=True))
    for tensor in subgraph.initializer:
        checked = check_dims(tensor.dims, tensor.data_type, file=graph.file, node=tensor.name)
        rename[tensor.name] = graph.const(
            inline_values(tensor, checked, graph.file),
            numpy_type(tensor.data_type, file=graph.file, node=tensor.name),
        )
    walk_inlined(graph, subgraph.node, rename, from_model=True)
    return [graph.resolve(rename[output.name]) for output in subgraph.output]


def walk_inlined(
    graph: Specializer, nodes: Iterable[onnx.NodeProto], rename: dict[str, str], *, from_model: bool
) -> None:
    """Walk nodes of a graph or function that is put in place of a node.

    Args:
        graph: The walk.
        nodes: In topological order.
        rename: Names in the inlined graph -> names in the walked one; gets the nodes' outputs added.
        from_model: Whether the nodes are the model's own, in the form of the model's opset.
    """
    for original in nodes:
        inner = onnx.NodeProto()
        inner.CopyFrom(original)
        inner.input[:] = [rename.get(name, name) for name in inner.input]
        for output in filter(None, inner.output):
            rename[output] = graph.fresh(output)
        inner.output[:] = [rename[name] if name else "" for name in inner.output]
        for subgraph in structure.subgraphs(inner):
            _rename_free(subgraph, rename)
        graph.walk(inner, from_model=from_model)


def _rename_free(subgraph: onnx.GraphProto, rename: dict[str, str]) -> None:
    own = {i.name for i in subgraph.input} | {t.name for t in subgraph.initializer}
    own |= {output for node in subgraph.node for output in node.output}
    visible = {name: new for name, new in rename.items() if name not in own}
    for node in subgraph.node:
        node.input[:] = [visible.get(name, name) for name in node.input]
        for inner in structure.subgraphs(node):
            _rename_free(inner, visible)
    for output in subgraph.output:
        output.name = visible.get(output.name, output.name)

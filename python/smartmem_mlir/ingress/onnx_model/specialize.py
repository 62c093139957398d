"""One forward walk over a graph that makes it static, and right for torch-mlir.

Each node is, in this order: evaluated if all its inputs are known constants (so the Shape, Gather, Concat
arithmetic of exporters disappears), made a weight if it gathers from one at known positions, replaced by a branch if it
is an `If` with a known condition, rewritten if torch-mlir would import it wrongly or not at all (`rewrites`), or kept
with the types of its outputs. What a node is replaced by is walked in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from smartmem_mlir.ingress.onnx_model import control_flow, functions, rewrites, unrolling
from smartmem_mlir.ingress.onnx_model.fold import constant_value, fold
from smartmem_mlir.ingress.onnx_model.infer import check_node, infer
from smartmem_mlir.ingress.onnx_model.modernize import MODERN_OPSET, modernize
from smartmem_mlir.ingress.onnx_model.reader import OnnxModel
from smartmem_mlir.ingress.onnx_model.refusals import DEPRECATED_BUT_SUPPORTED, Refusals, refusal_of
from smartmem_mlir.ingress.onnx_model.structure import live_nodes, node_label
from smartmem_mlir.ingress.onnx_model.tensors import Array, LazyTensor, TensorType, type_of
from smartmem_mlir.ingress.onnx_model.weight_gathers import gathered_weight


@dataclass
class StaticGraph:
    """A graph in which every value has a static type.

    Args:
        inputs: The model's inputs, in order.
        opset: Version of the default domain that the nodes are of.
        outputs: Names of the values to return, in the order of the model's outputs.
        nodes: In topological order; none computes shapes.
        types: Every value's type.
        constants: Values known at import.
        weights: Values that become parameters.
    """

    inputs: list[str]
    opset: int
    outputs: list[str] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    types: dict[str, TensorType] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, LazyTensor] = field(default_factory=dict)


class Specializer:
    """The walk's state, and what rewrites use to look at operands and to emit nodes.

    Args:
        model: The model.
        inputs: Static types of its inputs.
    """

    def __init__(self, model: OnnxModel, inputs: Mapping[str, TensorType]) -> None:
        self.source_opset = model.opsets[""]
        self.opset = max(self.source_opset, MODERN_OPSET)
        self.file: Path | None = model.file
        self.graph = StaticGraph([i.name for i in model.graph.input], self.opset)
        self.refusals = Refusals(model.file)
        self.ir_version = model.ir_version
        self._alias: dict[str, str] = {}  # value that a rewrite replaced -> its replacement
        self._untyped: set[str] = set()  # values that depend on a refused node
        self._names = set(inputs) | set(model.constants) | set(model.weights)
        self._names |= {output for node in model.graph.node for output in node.output}
        self._suffixes: Counter[str] = Counter()
        self._current = ""  # label of the source node that is being walked
        self.graph.types.update(inputs)
        for name, array in model.constants.items():
            self._define_constant(name, array)
        for name, weight in model.weights.items():
            self.graph.types[name] = weight.type
            self.graph.weights[name] = weight

    def run(self, graph: onnx.GraphProto) -> StaticGraph:
        """Walk all nodes of the main graph.

        Raises:
            UnsupportedModelError: Something is not supported; lists everything that is not.
            InvalidModelError: A node's inputs do not fit its operator.
        """
        for node in live_nodes(graph.node, {output.name for output in graph.output}):
            self._current = node_label(node)
            self.walk(node, from_model=True)
        self.refusals.raise_if_any()
        self.graph.outputs = [self.resolve(o.name) for o in graph.output]
        _remove_dead_nodes(self.graph)
        return self.graph

    # What rewrites use.

    def type(self, name: str) -> TensorType:
        """The type of a value."""
        return self.graph.types[self.resolve(name)]

    def constant(self, name: str) -> Array | None:
        """The value of an operand if it is known, else None (also for an omitted operand)."""
        return self.graph.constants.get(self.resolve(name)) if name else None

    def weight(self, name: str) -> LazyTensor | None:
        """The operand's values, not read yet, if it is a weight."""
        return self.graph.weights.get(self.resolve(name))

    def resolve(self, name: str) -> str:
        """The value that stands for `name` after rewrites."""
        while name in self._alias:
            name = self._alias[name]
        return name

    def fresh(self, stem: str) -> str:
        """A value name that nothing has."""
        name = stem
        while name in self._names:
            self._suffixes[stem] += 1
            name = f"{stem}.{self._suffixes[stem]}"
        self._names.add(name)
        return name

    def const(self, value: Any, dtype: Any = np.int64) -> str:
        """A new constant, by default of the index type."""
        name = self.fresh("const")
        self._define_constant(name, np.asarray(value, dtype=dtype))
        return name

    def emit(self, op_type: str, inputs: Sequence[str], *, outputs: int = 1, **attributes: Any) -> Any:
        """Emit a node of the default domain; it is walked like the model's own.

        Args:
            op_type: ONNX operator, at the walk's opset.
            inputs: Names of its operands; "" for an omitted one.
            outputs: How many results it has.
            attributes: Its attributes.

        Returns:
            The name of its result, or a list of names if `outputs` is not 1.
        """
        names = [self.fresh(f"{op_type.lower()}.{i}") for i in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        node = onnx.helper.make_node(op_type, list(inputs), names, name=self._current, **attributes)
        self.walk(node)
        if not self._untyped.isdisjoint(names):
            raise rewrites.Abandoned
        return self.resolve(names[0]) if outputs == 1 else [self.resolve(name) for name in names]

    def keep(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Emit a node of one result that is not rewritten, from the rewrite of its own operator."""
        name = self.fresh(f"{op_type.lower()}.kept")
        node = onnx.helper.make_node(op_type, list(inputs), [name], name=self._current, **attributes)
        self.graph.types.update(infer(self, node))
        self.graph.nodes.append(node)
        return name

    # The walk.

    def walk(self, node: onnx.NodeProto, *, from_model: bool = False) -> None:
        """Fold, rewrite or keep one node whose operands have been walked.

        Args:
            node: The node; it is changed.
            from_model: Whether it is the model's own, in the form of the model's opset.
        """
        node.input[:] = [self.resolve(name) for name in node.input]
        if node.domain == "ai.onnx":
            node.domain = ""
        if any(name in self._untyped for name in node.input):
            reason = refusal_of(node, self.source_opset if from_model else self.opset)
            if reason is not None:
                self.refusals.add(node, reason)
            self._untyped.update(filter(None, node.output))
            return
        try:
            self._walk(node, from_model)
        except rewrites.Refuse as refusal:
            self.refuse(node, str(refusal))
        except rewrites.Abandoned:
            self._untyped.update(filter(None, node.output))

    def refuse(self, node: onnx.NodeProto, reason: str) -> None:
        """Note that a node is not supported, and go on to find all others."""
        self.refusals.add(node, reason)
        self._untyped.update(filter(None, node.output))

    def _walk(self, node: onnx.NodeProto, from_model: bool) -> None:
        opset = self.source_opset if from_model else self.opset
        reason = refusal_of(node, opset)
        if reason is not None:
            self.refuse(node, reason)
            return
        if node.op_type == "If":
            control_flow.inline_branch(self, node)
            return
        if node.op_type in ("Loop", "Scan"):
            self._replace(node, unrolling.unroll(self, node), {})
            return
        if node.op_type not in DEPRECATED_BUT_SUPPORTED:  # ONNX's checker rejects deprecated versions
            check_node(self, node, opset)
        if from_model and (modern := modernize(self, node)) is not None:
            self.bind(node.output[0], modern)
            return
        if node.op_type == "Constant":
            self._define_constant(node.output[0], constant_value(self, node))
            return
        if node.op_type == "Range" and self._fold(node, {}):
            return  # before inference, which is stricter about ranks than ONNX Runtime and exporters are
        try:
            types = infer(self, node)
        except rewrites.Refuse:
            if self._fold(node, {}):
                return
            replacement = rewrites.apply_untyped(self, node) or functions.expand_definition(self, node)
            if replacement is None:
                raise
            self._replace(node, replacement, {})
            return
        if self._fold(node, types):
            return
        if (weight := gathered_weight(self, node, types)) is not None:
            self.graph.types[node.output[0]] = weight.type
            self.graph.weights[node.output[0]] = weight
            return
        self.graph.types.update(types)  # rewrites look at the types of the results
        replacement = rewrites.apply(self, node)
        if replacement is None:
            replacement = functions.expand(self, node)
        if replacement is not None:
            self._replace(node, replacement, types)
        else:
            node.ClearField("doc_string")
            del node.metadata_props[:]  # exporters put whole stack traces here
            self.graph.nodes.append(node)

    def _fold(self, node: onnx.NodeProto, types: Mapping[str, TensorType]) -> bool:
        folded = fold(self, node, types)
        for name, array in zip(node.output, folded or (), strict=False):
            if name:
                self._define_constant(name, array)
        return folded is not None

    def _replace(self, node: onnx.NodeProto, results: Sequence[str], types: Mapping[str, TensorType]) -> None:
        for name, new in zip(node.output, results, strict=False):
            if name:
                self.bind(name, new, types.get(name))

    def bind(self, name: str, new: str, expected: TensorType | None = None) -> None:
        """Let `new` stand for `name`; `expected` is the type that inference gave to `name`."""
        new = self.resolve(new)
        if new in self._untyped:
            self._untyped.add(name)
            return
        found = self.graph.types[new]
        if expected is not None and found != expected:
            raise rewrites.Refuse(f"its replacement gives {found}, where ONNX infers {expected}")
        self._alias[name] = new

    def _define_constant(self, name: str, array: Array) -> None:
        self.graph.constants[name] = array
        self.graph.types[name] = type_of(array)


def specialize(model: OnnxModel, inputs: Mapping[str, TensorType]) -> StaticGraph:
    """Make a model's graph static and importable.

    Args:
        model: The model.
        inputs: Static types of its inputs.
    """
    return Specializer(model, inputs).run(model.graph)


def _remove_dead_nodes(graph: StaticGraph) -> None:
    live = set(graph.outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(graph.nodes):
        if live.intersection(node.output):
            kept.append(node)
            live.update(filter(None, node.input))
    graph.nodes = kept[::-1]
    graph.constants = {name: value for name, value in graph.constants.items() if name in live}
    graph.weights = {name: value for name, value in graph.weights.items() if name in live}

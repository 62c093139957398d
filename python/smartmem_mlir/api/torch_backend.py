"""`torch.compile(module, backend="smartmem")`, for inference.

torch finds :func:`smartmem` by the entry point `torch_dynamo_backends` of this package. Dynamo hands over a graph whose
arguments are the module's weights as well as its inputs. Weights become constants of the compiled model, so that they
are laid out when it is compiled; when one has been replaced or written to since, the graph is compiled again. A graph
is compiled at its first call, once for each combination of shapes.

torch is imported by whoever imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from smartmem_mlir.api.compilation import compile
from smartmem_mlir.api.compiled_model import CompiledModel
from smartmem_mlir.api.torch_programs import export_graph, outputs_of
from smartmem_mlir.api.values import to_array
from smartmem_mlir.errors import OptionError

Signature = tuple[Any, ...]
"""Shapes and types of a call's inputs, and the sizes that Dynamo passes as numbers."""


def smartmem(
    graph: fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str = ""
) -> Callable[..., Any]:
    """A backend of `torch.compile`.

    Args:
        graph: What Dynamo traced.
        example_inputs: Its arguments.
        options: Fields of :class:`CompileOptions`, as `torch.compile(..., options={"target": "vulkan"})`; the entry is
            "in-place" unless they say otherwise.
        mode: torch's; "default" is the only one.

    Returns:
        A function of the graph's arguments.

    Raises:
        OptionError: Gradients are asked for, or the mode is another backend's.
        UnsupportedModelError: At the first call: the graph has operations that are not supported, or writes to its
            inputs.
    """
    if mode not in ("", "default"):
        raise OptionError(f"mode '{mode}' is not one of the backend 'smartmem'", hint="leave it out")
    if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs):
        raise OptionError("the backend 'smartmem' computes no gradients", hint="call the module inside torch.no_grad()")
    return _Compiled(graph, [_is_weight(value) for value in example_inputs], dict(options or {}))


def _is_weight(value: Any) -> bool:
    # Dynamo marks what belongs to the module and keeps its place between calls: parameters and buffers.
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


class _Compiled:
    """A graph, compiled for the shapes that it has been called with."""

    def __init__(self, graph: fx.GraphModule, is_weight: Sequence[bool], options: dict[str, Any]) -> None:
        self._graph = graph
        self._is_weight = is_weight
        self._options = options
        self._weights: list[tuple[Any, int]] = []
        self._by_signature: dict[Signature, Callable[[Sequence[Any]], Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        weights = [value for value, is_weight in zip(arguments, self._is_weight, strict=True) if is_weight]
        if not self._are_current(weights):
            self._by_signature.clear()
            self._weights = [(weight, _version(weight)) for weight in weights]
        signature = tuple(
            (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else value
            for value, is_weight in zip(arguments, self._is_weight, strict=True)
            if not is_weight
        )
        if signature not in self._by_signature:
            self._by_signature[signature] = self._compile(arguments)
        tensors = [
            value
            for value, is_weight in zip(arguments, self._is_weight, strict=True)
            if not is_weight and isinstance(value, torch.Tensor)
        ]
        return self._by_signature[signature](tensors)

    def _are_current(self, weights: Sequence[Any]) -> bool:
        return len(weights) == len(self._weights) and all(
            weight is known and _version(weight) == version
            for weight, (known, version) in zip(weights, self._weights, strict=True)
        )

    def _compile(self, arguments: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
        module, inputs = _bind(self._graph, arguments, self._is_weight)
        program = export_graph(module, tuple(inputs))
        outputs = outputs_of(program)
        if all(kind != "tensor" for kind, _ in outputs):
            return lambda tensors: tuple(value for _, value in outputs)
        return _Runner(compile(program, **{"entry": "in-place", **self._options}), outputs)


class _Runner:
    """A compiled graph with its outputs in the order in which Dynamo wants them."""

    def __init__(self, model: CompiledModel, outputs: Sequence[tuple[str, Any]]) -> None:
        self._model = model
        self._outputs = outputs

    def __call__(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        device = tensors[0].device if tensors else torch.device("cpu")
        computed = iter(self._model.run([to_array(tensor) for tensor in tensors]).values())
        return tuple(
            torch.from_numpy(next(computed)).to(device) if kind == "tensor" else value for kind, value in self._outputs
        )


def _version(tensor: Any) -> int:
    # Tensors made under torch.inference_mode() count no writes.
    return 0 if tensor.is_inference() else int(tensor._version)


def _bind(
    graph: fx.GraphModule, arguments: Sequence[Any], is_weight: Sequence[bool]
) -> tuple[fx.GraphModule, list[Any]]:
    """The graph with weights as its own tensors and sizes as numbers, and the arguments that remain."""
    module = fx.GraphModule(graph, fx.Graph())
    values: dict[fx.Node, fx.Node] = {}
    module.graph.output(module.graph.graph_copy(graph.graph, values))
    inputs = []
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for original, value, weight in zip(placeholders, arguments, is_weight, strict=True):
        node = values[original]
        if weight:
            module.register_buffer(f"weight_{node.name}", value.detach())
            with module.graph.inserting_before(node):
                constant = module.graph.get_attr(f"weight_{node.name}")
            node.replace_all_uses_with(constant)
        elif isinstance(value, torch.Tensor):
            inputs.append(value)
            continue
        else:
            _substitute(node, value)
        module.graph.erase_node(node)
    module.recompile()
    return module, inputs


def _substitute(node: fx.Node, value: Any) -> None:
    """Puts a number in place of a node wherever it is used."""

    def replaced(each: fx.Node) -> Any:
        return value if each is node else each

    for user in list(node.users):
        user.args = fx.map_arg(user.args, replaced)
        user.kwargs = fx.map_arg(user.kwargs, replaced)

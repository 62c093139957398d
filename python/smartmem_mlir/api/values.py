"""NumPy arrays and torch tensors as values at the boundary of a compiled model.

torch is never imported here: whoever hands over a tensor has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smartmem_mlir.errors import OptionError

Array = npt.NDArray[np.generic]


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_array(value: Any, node: str | None = None) -> Array:
    """A value as an array; a tensor in host memory is not copied.

    Args:
        value: An array, a torch tensor on any device, or what NumPy makes an array of.
        node: The input's name, for the error.

    Raises:
        OptionError: It is no tensor of numbers, or of a type that NumPy has not.
    """
    try:
        if is_tensor(value):
            return np.asarray(value.detach().cpu().contiguous().numpy())
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise OptionError(f"not an array: {error}", hint="give NumPy arrays or torch tensors", node=node) from error
    if array.dtype.hasobject or array.dtype.kind in "USV":
        raise OptionError(
            f"a {type(value).__name__} is not an array of numbers",
            hint="give NumPy arrays or torch tensors",
            node=node,
        )
    return array


def like_inputs(outputs: Iterable[Array], inputs: Iterable[Any]) -> tuple[Any, ...]:
    """Outputs as torch tensors if an input is one, on that one's device; else as they are."""
    tensor = next((value for value in inputs if is_tensor(value)), None)
    if tensor is None:
        return tuple(outputs)
    import torch

    return tuple(torch.from_numpy(values).to(tensor.device) for values in outputs)


def example_arrays(example_inputs: Any) -> list[Array]:
    """Example inputs, one or several, as arrays."""
    return [to_array(value) for value in as_sequence(example_inputs)]


def as_sequence(example_inputs: Any) -> Sequence[Any]:
    """Example inputs in order; a single array or tensor stands for itself."""
    return list(example_inputs) if isinstance(example_inputs, (tuple, list)) else [example_inputs]


def onnx_dims(path: Path, arrays: Sequence[Array]) -> dict[str, int]:
    """The sizes of an ONNX model's dimensions that example inputs have, as `input:axis`.

    Args:
        path: The model.
        arrays: One array for each of its inputs, in order.

    Raises:
        OptionError: There are more or fewer arrays than inputs.
        InvalidModelError: The file is not a model.
    """
    from smartmem_mlir.ingress.onnx_model.reader import read_file

    names = [value.name for value in read_file(path).graph.input]
    if len(names) != len(arrays):
        raise OptionError(
            f"{len(arrays)} example inputs were given, the model takes {len(names)}: {', '.join(names)}", file=path
        )
    return {
        f"{name}:{axis}": size
        for name, array in zip(names, arrays, strict=True)
        for axis, size in enumerate(array.shape)
    }


def flatten_named(given: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    """What a call of a compiled model gives: values in order, or by name.

    Raises:
        OptionError: Both kinds at once.
    """
    if given and named:
        raise OptionError("inputs were given in order and by name", hint="give all in order, or all by name")
    if len(given) == 1 and isinstance(given[0], Mapping):
        return dict(given[0])
    return dict(named) if named else list(given)

"""Programs of `torch.export`: made of modules and graphs, and refused where compiling them would lose something.

torch is imported by whoever hands over a module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smartmem_mlir.errors import OptionError, UnsupportedModelError


def export_module(module: Any, example_inputs: Sequence[Any]) -> Any:
    """The program of a `torch.nn.Module` in evaluation mode.

    Args:
        module: The module.
        example_inputs: Tensors, or NumPy arrays, in the order of its arguments.

    Raises:
        OptionError: It is no module.
        UnsupportedModelError: torch cannot export it, or it writes to its inputs or buffers.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise OptionError(
            f"cannot compile a {type(module).__name__}",
            hint="give a path, a torch.nn.Module with example inputs, or a torch.export.ExportedProgram",
        )
    tensors = tuple(
        torch.from_numpy(np.ascontiguousarray(value)) if isinstance(value, np.ndarray) else value
        for value in example_inputs
    )
    return export_graph(module.eval(), tensors)


def export_graph(module: Any, inputs: tuple[Any, ...]) -> Any:
    """The program of a module or a graph as it stands.

    Raises:
        UnsupportedModelError: torch cannot export it, or it writes to its inputs or buffers.
    """
    import torch

    with torch.no_grad():
        try:
            program = torch.export.export(module, inputs)
        except Exception as error:  # torch raises many types
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise UnsupportedModelError(f"torch.export fails on the module: {first[0]}") from error
        outputs_of(program)
    return program


def outputs_of(program: Any) -> list[tuple[str, Any]]:
    """For each output of a program: ("tensor", None) if it is computed, or ("constant", its value).

    Raises:
        UnsupportedModelError: The program writes to an input or a buffer, which a compiled model does not.
    """
    outputs = []
    # An empty table decomposes nothing; it makes writes in place visible, as outputs of their own.
    for spec in program.run_decompositions({}).graph_signature.output_specs:
        if spec.kind.name != "USER_OUTPUT":
            raise UnsupportedModelError(
                f"the program writes to '{spec.target}'", hint="call eval() on the module; write to no inputs"
            )
        constant = type(spec.arg).__name__ == "ConstantArgument"
        outputs.append(("constant", spec.arg.value) if constant else ("tensor", None))
    return outputs

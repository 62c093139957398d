"""Does an ONNX file compute what PyTorch computed?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.zoo.draw import Draw
from smartmem_mlir.zoo.recipe import load_recipe, metadata

SAMPLES = 64
"""Elements of an output that a recipe remembers."""


@dataclass(frozen=True)
class Reference:
    """PyTorch's output on the test inputs, in brief.

    Args:
        shape: Its extents.
        mean: Mean of all elements.
        std: Standard deviation of all elements.
        samples: Elements spread evenly over the flat output.
    """

    shape: tuple[int, ...]
    mean: float
    std: float
    samples: tuple[float, ...]

    @staticmethod
    def of(output: npt.NDArray[Any]) -> Reference:
        """What to remember of an output.

        Raises:
            InvalidModelError: The output is not finite or constant: such weights would test nothing.
        """
        mean, std = float(output.mean(dtype=np.float64)), float(output.std(dtype=np.float64))
        if not np.isfinite(output).all() or std < 1e-3:
            raise InvalidModelError(f"degenerate output: mean {mean}, standard deviation {std}")
        return Reference(tuple(output.shape), mean, std, tuple(map(float, _sampled(output))))

    def error(self, output: npt.NDArray[Any]) -> float:
        """Largest deviation of samples, mean and standard deviation, in units of the standard deviation.

        Infinite if the shape differs or the output is not finite.
        """
        if tuple(output.shape) != tuple(self.shape) or not np.isfinite(output).all():
            return float("inf")
        samples = np.abs(_sampled(output) - np.asarray(self.samples)).max()
        moments = max(abs(output.mean(dtype=np.float64) - self.mean), abs(output.std(dtype=np.float64) - self.std))
        return float(max(samples, moments) / self.std)


def _sampled(output: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    flat = output.reshape(-1)
    positions = np.linspace(0, flat.size - 1, min(SAMPLES, flat.size)).astype(np.int64)
    return flat[positions].astype(np.float64)


def reference_inputs(recipe: Path | str) -> dict[str, npt.NDArray[np.generic]]:
    """The inputs that the reference of a recipe belongs to, by name.

    Raises:
        InvalidModelError: The file is no recipe of the zoo.
    """
    inputs = {}
    for fields in _metadata(recipe)["inputs"]:
        name = fields.pop("name")
        inputs[name] = Draw(**{**fields, "shape": tuple(fields["shape"])}).values()
    return inputs


def reference(recipe: Path | str) -> Reference:
    """PyTorch's output that a recipe remembers.

    Raises:
        InvalidModelError: The file is no recipe of the zoo.
    """
    return Reference(**_metadata(recipe)["reference"])


def _metadata(recipe: Path | str) -> dict[str, Any]:
    found = metadata(load_recipe(recipe))
    if not found:
        raise InvalidModelError("not a recipe of the zoo", file=recipe, hint="make one with `smartmem zoo recipe`")
    return found


def run_onnx(model: Path | str, inputs: dict[str, npt.NDArray[np.generic]], threads: int = 1) -> npt.NDArray[Any]:
    """The first output of a model under ONNX Runtime on the CPU, without graph optimisations that change numbers."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    output: npt.NDArray[Any] = session.run(None, inputs)[0]
    return output

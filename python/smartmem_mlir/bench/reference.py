"""The reference outputs: ONNX Runtime with its graph optimisations off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from smartmem_mlir.bench.model import BenchModel
from smartmem_mlir.errors import UnsupportedModelError
from smartmem_mlir.report.inputs import random_inputs
from smartmem_mlir.report.reference import index_bounds

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Workload:
    """One inference: its inputs on disk, where engines read them, and the outputs they must give.

    Args:
        inputs: `.npy` files, in the model's order.
        reference: Outputs, in the model's order.
    """

    inputs: tuple[Path, ...]
    reference: tuple[Array, ...]


def make_workload(model: BenchModel, folder: Path, seed: int, threads: int) -> Workload:
    """Draw inputs and compute the reference.

    Args:
        model: The model.
        folder: Folder for the inputs.
        seed: Seed of the inputs.
        threads: Threads for ONNX Runtime.

    Raises:
        UnsupportedModelError: ONNX Runtime does not run the model: nothing could be verified.
    """
    arrays = random_inputs(model.inputs, seed, index_bounds(model.path))
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for index, array in enumerate(arrays):
        path = folder / f"input{index}.npy"
        np.save(path, array)
        paths.append(path)
    return Workload(tuple(paths), tuple(_run(model, arrays, threads)))


def _run(model: BenchModel, arrays: Sequence[Array], threads: int) -> list[Array]:
    options = ort.SessionOptions()
    # ONNX Runtime is also one of the rivals: with its rewrites off, their errors show when it is compared with itself.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    feeds = {entry.name: array for entry, array in zip(model.inputs, arrays, strict=True)}
    try:
        session = ort.InferenceSession(model.path, options, providers=["CPUExecutionProvider"])
        outputs: list[Array] = session.run(list(model.outputs), feeds)
    except Exception as error:  # ONNX Runtime's exceptions share no base class below Exception
        raise UnsupportedModelError(
            f"ONNX Runtime, the reference, does not run the model: {str(error).strip()}", file=model.source
        ) from error
    return outputs

"""Comparison of a compiled model with the framework that it came from."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from smartmem_mlir.api.compilation import compile
from smartmem_mlir.api.compiled_model import CompiledModel
from smartmem_mlir.api.options import CompileOptions, Progress
from smartmem_mlir.api.values import Array
from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.iree.toolchain import COMPILER_PACKAGE
from smartmem_mlir.report import directory
from smartmem_mlir.report.compare import TOLERANCE, Difference, compare
from smartmem_mlir.report.inputs import random_inputs
from smartmem_mlir.report.reference import Reference, onnx_reference, torch_reference
from smartmem_mlir.report.schema import Report


@dataclass(frozen=True)
class VerifyResult:
    """What `verify` found.

    Args:
        reference: What the module was compared with.
        device: Where it ran.
        tolerance: Largest accepted relative L2 distance.
        by_seed: The differences of each output, for each seed of the inputs.
    """

    reference: str
    device: str
    tolerance: float
    by_seed: Mapping[int, Sequence[Difference]]

    @property
    def matches(self) -> bool:
        """Whether every output agreed for every seed."""
        return all(difference.matches for differences in self.by_seed.values() for difference in differences)


def verify_model(
    compiled: CompiledModel,
    device: str,
    seeds: Sequence[int],
    model: Path | None,
    tolerance: float | None,
    trusted: bool,
    progress: Progress,
) -> VerifyResult:
    """Runs a model and its reference on random inputs; see :meth:`CompiledModel.verify`."""
    module = compiled.load_module(device)
    progress("loading the reference")
    reference = _reference(source_of(compiled.report, model), compiled.report, trusted)
    inputs = [info.spec for info in compiled.report.inputs]
    outputs = [info.spec for info in compiled.report.outputs]
    if tolerance is None:
        tolerance = max(TOLERANCE.get(spec.dtype, 0.0) for spec in (*inputs, *outputs)) or TOLERANCE["f32"]
    by_seed = {}
    for seed in seeds:
        progress(f"comparing, seed {seed}")
        arrays = random_inputs(inputs, seed, reference.bounds)
        by_seed[seed] = compare(outputs, module(arrays), reference.run(arrays), tolerance)
    return VerifyResult(reference.name, device, tolerance, by_seed)


def source_of(report: Report, moved_to: Path | None) -> Path:
    """The model's file, unchanged since it was compiled.

    Raises:
        InvalidModelError: It is missing, has changed, or there never was one.
    """
    source = report.source
    if moved_to is None and source.path is None:
        raise InvalidModelError("the model came from memory, not from a file", hint="name a file with --model")
    path = moved_to or Path(source.path or "")
    if not path.is_file():
        raise InvalidModelError("the model is not there any more", hint="name it with --model", file=path)
    if source.sha256 is not None and directory.sha256(path) != source.sha256:
        raise InvalidModelError("the model has changed since it was compiled", hint="compile it again", file=path)
    return path


def _reference(path: Path, report: Report, trusted: bool) -> Reference:
    if report.source.kind == "onnx":
        return onnx_reference(path)
    if report.source.kind == "torch":
        return torch_reference(path, trusted)
    return _unoptimized_reference(path, report)


def _unoptimized_reference(path: Path, report: Report) -> Reference:
    """For a module that has no framework behind it: IREE on the CPU at O0, without any of our passes."""
    options = CompileOptions(
        target="cpu", dims=report.source.dims, dtype=report.source.dtype, baseline=True, opt_level="O0"
    )
    workspace = tempfile.TemporaryDirectory()
    compiled = compile(path, Path(workspace.name) / "reference", options=options)

    def run_reference(inputs: Sequence[Array]) -> list[Array]:
        # Keeps the temporary directory alive as long as the module is mapped.
        assert workspace.name
        return list(compiled.run(list(inputs)).values())

    return Reference(f"IREE {metadata.version(COMPILER_PACKAGE)}, llvm-cpu, O0", run_reference, {})

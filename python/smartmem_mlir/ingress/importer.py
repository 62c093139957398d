"""The entry of the importers: any supported source to linalg on tensors with the weights outside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from smartmem_mlir.errors import InvalidModelError, SmartMemError
from smartmem_mlir.ingress.model import ImportedModel, ImportOptions

Progress = Callable[[str], None]
"""Called with what happens next, in a few words, for stages that can take seconds."""


def load(
    source: Path | str | Any, options: ImportOptions | None = None, progress: Progress | None = None
) -> ImportedModel:
    """Import a model.

    Args:
        source: A path to an `.onnx`, `.mlir` or `.pt2` file, or, with torch installed, a
            `torch.export.ExportedProgram` or a pair `(torch.nn.Module, example_inputs)`.
        options: Sizes of symbolic dimensions and the floating-point type.
        progress: Told what happens next.

    Returns:
        The model as `func.func @main` with static shapes; the values of its weights are not read yet.

    Raises:
        InvalidModelError: The file is missing, damaged or inconsistent.
        UnsupportedModelError: The model uses something that is not supported; the error lists all of it.
        OptionError: The options do not fit the model.
        CompilerError: The importer crashed on a model that we consider valid.
    """
    options = options or ImportOptions()
    progress = progress or _silent
    if not isinstance(source, (str, Path)):
        from smartmem_mlir.ingress.torch_module import import_torch

        return import_torch(source, options, progress)
    path = Path(source)
    if not path.exists():
        raise InvalidModelError("no such file", file=path)
    if path.is_dir():
        raise InvalidModelError("is a directory, not a model", file=path)
    try:
        return _import_file(path, options, progress)
    except SmartMemError:
        raise
    except (MemoryError, RecursionError) as error:
        raise InvalidModelError(
            f"the model is too large or too deeply nested ({type(error).__name__})", file=path
        ) from error


def _import_file(path: Path, options: ImportOptions, progress: Progress) -> ImportedModel:
    if path.suffix in (".mlir", ".mlirbc"):
        from smartmem_mlir.ingress.mlir_module import import_mlir

        return import_mlir(path, options, progress)
    if path.suffix == ".pt2":
        from smartmem_mlir.ingress.torch_module import import_pt2

        return import_pt2(path, options, progress)
    from smartmem_mlir.ingress.onnx_importer import import_onnx

    return import_onnx(path, options, progress)


def _silent(_: str) -> None:
    """Tell nobody."""

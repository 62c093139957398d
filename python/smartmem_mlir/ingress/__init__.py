"""Importers: ONNX, PyTorch and linalg MLIR to `func.func @main` on tensors, weights outside the IR."""

from smartmem_mlir.ingress.importer import load
from smartmem_mlir.ingress.model import ImportedModel, ImportOptions

__all__ = ["ImportOptions", "ImportedModel", "load"]

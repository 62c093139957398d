"""The process in which torch-mlir runs: `python -m smartmem_mlir.ingress.lowering_worker DIRECTORY`.

The directory holds `0.onnx`, `1.onnx`, ... and `parameters.json` (the parameters' names). For each model in
turn the worker writes `N.mlir`, or `N.error` with one line. A model with neither when the worker has ended is
the one that crashed it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import onnx

from smartmem_mlir.ingress.lowering import LoweringError, lower


def main(directory: Path) -> None:
    """Lower every model of a directory that has no result yet."""
    parameters = json.loads((directory / "parameters.json").read_text())
    for path in sorted(directory.glob("*.onnx"), key=lambda p: int(p.stem)):
        text, failed = path.with_suffix(".mlir"), path.with_suffix(".error")
        if text.exists() or failed.exists():
            continue
        try:
            text.write_text(lower(onnx.ModelProto.FromString(path.read_bytes()), parameters))
        except LoweringError as error:
            failed.write_text(str(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

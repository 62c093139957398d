"""The process in which torch-mlir runs: `python -m smartmem_mlir.ingress.lowering_worker DIRECTORY`.

The directory holds `0.onnx`, `1.onnx`, ... and `parameters.json` (the parameters' names). For each model the worker
writes `N.mlir`, or `N.error` with one line. Models without parameters are lowered in groups; `attempt.json` names those
that are being lowered, so that after a crash it is known which may have caused it. Models that `singly.json` names are
lowered alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import onnx

from smartmem_mlir.ingress.lowering import LoweringError, lower

GROUP = 16
"""Models lowered together."""

ATTEMPT, SINGLY, PARAMETERS = "attempt.json", "singly.json", "parameters.json"


def main(directory: Path) -> None:
    """Lower every model of a directory that has no result yet."""
    parameters = json.loads((directory / PARAMETERS).read_text())
    alone = set(json.loads((directory / SINGLY).read_text())) if (directory / SINGLY).exists() else set()
    pending = [p for p in sorted(directory.glob("*.onnx"), key=lambda p: int(p.stem)) if not has_result(p)]
    together = [p for p in pending if p.stem not in alone] if not parameters else []
    for start in range(0, len(together), GROUP):
        _attempt(directory, together[start : start + GROUP], parameters)
    for path in pending:
        if path not in together:
            _attempt(directory, [path], parameters)


def has_result(path: Path) -> bool:
    """Whether a model has been lowered or rejected."""
    return path.with_suffix(".mlir").exists() or path.with_suffix(".error").exists()


def _attempt(directory: Path, paths: Sequence[Path], parameters: Sequence[str]) -> None:
    (directory / ATTEMPT).write_text(json.dumps([p.stem for p in paths]))
    try:
        results = lower([onnx.ModelProto.FromString(p.read_bytes()) for p in paths], parameters)
    except LoweringError as error:
        if len(paths) > 1:
            for path in paths:
                _attempt(directory, [path], parameters)
            return
        results = [error]
    for path, result in zip(paths, results, strict=True):
        path.with_suffix(".mlir" if isinstance(result, str) else ".error").write_text(str(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

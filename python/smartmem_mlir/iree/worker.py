"""The process in which MLIR runs: `python -m smartmem_mlir.iree.worker REQUEST RESULT`, both of them JSON files.

MLIR checks itself with assertions, which end the process; what runs here is asked for by `iree.isolation`, which turns
such an end into an error of one line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.iree.record import recorded
from smartmem_mlir.iree.storage import Entry
from smartmem_mlir.targets import Pipeline, TargetDescription


def lower(
    module: str, output: str, pipeline: dict[str, Any], target: dict[str, Any], emit: bool, entry: Entry
) -> dict[str, Any]:
    """Run a pipeline on the module in a file and, if asked to, emit it for iree-compile.

    Returns:
        The key of each parameter that the module reads; for those that are views of others, source and view.
    """
    from smartmem_mlir.iree.lower import emit_iree, run_passes

    description = TargetDescription.model_validate(target)
    text, parameters = run_passes(Path(module).read_text(), Pipeline.model_validate(pipeline), description)
    Path(output).write_text(emit_iree(text, description, entry) if emit else text)
    return parameters


def count(flow: str) -> dict[str, Any]:
    """Count the kernels of the flow IR in a file."""
    from smartmem_mlir.iree.flow.read import read_flow

    return read_flow(Path(flow)).model_dump(mode="json")


TASKS: dict[str, Callable[..., Any]] = {"lower": recorded(lower), "count": count}


def main(request_path: str, result_path: str) -> None:
    """Do one task and write its result, or the error that it raised."""
    request = json.loads(Path(request_path).read_text())
    try:
        result = {"value": TASKS[request["task"]](**request["arguments"])}
    except SmartMemError as error:
        result = {
            "error": {
                "type": type(error).__name__,
                "what": error.what,
                "hint": error.hint,
                "file": error.file,
                "node": error.node,
            }
        }
    Path(result_path).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])

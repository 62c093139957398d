"""The process in which graphs are read: `python -m smartmem_mlir.report.graph.worker KIND MODULE RESULT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from smartmem_mlir.errors import CompilerError


def main(kind: str, module: str, result: str) -> int:
    """Read a graph and write its nodes and edges as JSON; 1 with one line on stderr if it cannot be read."""
    from smartmem_mlir.report.graph.read import read_flow_graph, read_import

    try:
        nodes, edges = {"import": read_import, "flow": read_flow_graph}[kind](Path(module))
    except CompilerError as error:
        print(error, file=sys.stderr)
        return 1
    content = {
        "nodes": [node.model_dump(mode="json") for node in nodes],
        "edges": [edge.model_dump(mode="json") for edge in edges],
    }
    Path(result).write_text(json.dumps(content))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

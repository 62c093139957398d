"""One HTML page about a compilation, without anything from the network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from smartmem_mlir.report.graph.model import Graph
from smartmem_mlir.report.measure import KernelTime
from smartmem_mlir.report.schema import Report
from smartmem_mlir.report.survivors import survivors
from smartmem_mlir.report.totals import Totals

_SCRIPTS = ("picture.js", "charts.js", "details.js", "graph.js", "page.js")


def render_page(
    report: Report,
    totals: Mapping[str, Totals],
    graphs: Mapping[str, Graph],
    times: Mapping[str, KernelTime] | None = None,
) -> str:
    """The page as text.

    Args:
        report: Of the compilation.
        totals: The states "before" and "after".
        graphs: The same states; "before" may be missing, when the model's file is.
        times: Measured times by the kernel's name.
    """
    content = page_content(report, totals, graphs, times)
    # "<" would end the script element or start a comment if it were part of a name.
    data = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    script = "\n".join(_file(name) for name in _SCRIPTS)
    page = _file("page.html")
    for mark, text in (("/*STYLE*/", _file("page.css")), ("/*SCRIPT*/", script), ("/*DATA*/", data)):
        head, _, tail = page.partition(mark)
        page = head + text + tail
    return page


def page_content(
    report: Report,
    totals: Mapping[str, Totals],
    graphs: Mapping[str, Graph],
    times: Mapping[str, KernelTime] | None = None,
) -> dict[str, Any]:
    """What the page's script reads."""
    return {
        "model": report.source.name,
        "target": report.target.name,
        "pipeline": "plain IREE" if report.baseline else report.pipeline,
        "totals": {name: each.model_dump(mode="json") for name, each in totals.items()},
        "weight_bytes": report.weight_bytes,
        "layouts": [
            {"tensors": each.tensors, "permuted": each.permuted, "status": each.status, "method": each.method}
            for each in report.layouts
        ],
        "survivors": [each.__dict__ for each in survivors(report.movements)],
        "measured": bool(times),
        "graphs": {name: {**_compact(graph), "live": graph.live_bytes()} for name, graph in graphs.items()},
    }


def _compact(graph: Graph) -> dict[str, Any]:
    """A graph without what is empty: pages of thousands of nodes should load fast."""
    return json.loads(graph.model_dump_json(exclude_defaults=True))  # type: ignore[no-any-return]


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")

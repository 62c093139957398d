"""Writes what plain IREE does on a GPU, per target description and level, as a table.

    python benchmarks/device/levels.py results/h200_baseline.json results/h200_shaders.json > results/h200_baseline.md

Rows are what `measure.py` wrote, and what `pack.py` could not compile, under `error`. Of a module in several files the
first counts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LIMIT = {"f32": 1e-4, "f16": 5e-3}
HEADER = [
    "model",
    "target",
    "level",
    "kernels",
    "data movement",
    "MB moved",
    "of MB in all",
    "device ms",
    "call ms",
    "relative L2",
]


def main() -> None:
    """Reads the files and prints the table."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for path in map(Path, sys.argv[1:]):
        for row in json.loads(path.read_text())["rows"]:
            if row.get("baseline", True):
                rows.setdefault(_key(row), row)
    print("# Plain IREE on an NVIDIA H200, f32, batch 1\n")
    print("By IREE's calling convention, through Vulkan; a result further than 1e-4 from ONNX Runtime's is wrong.\n")
    print(_line(HEADER))
    print(_line(["---"] * len(HEADER)))
    for key in sorted(rows):
        print(_line([*key, *_cells(rows[key])]))


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    """Model, target and level; what did not compile says them in its module's name only."""
    rest = row["module"].removeprefix(row["model"] + "-").split("-")
    return row["model"], rest[0], row.get("opt_level") or rest[1].replace("default", "O1")


def _cells(row: dict[str, Any]) -> list[str]:
    if "kernels" not in row:
        return ["", "", "", "", "fails", "fails", row["error"].partition(": ")[2] or row["error"]]
    times = [f"{row[key]:.3g}" if key in row else "fails" for key in ("device_ms", "ms")]
    wrong = " (wrong)" if not row["relative_l2"] < LIMIT[row["dtype"]] else ""
    counts = [str(row["kernels"]), str(row["movement_kernels"])]
    traffic = [f"{row[key] / 1e6:.3g}" for key in ("movement_bytes", "total_bytes")]
    return [*counts, *traffic, *times, f"{row['relative_l2']:.1e}{wrong}"]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()

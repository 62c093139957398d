#!/usr/bin/env python3
"""The tables of the README, from `results/`; writes them between their markers.

python benchmarks/readme_tables.py          # after a campaign
python benchmarks/readme_tables.py --check  # exit 1 if the README says something else
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from smartmem_mlir.bench.report import read_json
from smartmem_mlir.bench.results import Campaign
from smartmem_mlir.bench.tables import counted, find, latency_cell, table
from smartmem_mlir.bench.timing import geometric_mean
from smartmem_mlir.zoo.cards import CARDS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
RIVALS = {
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "mnn": "MNN",
    "litert": "LiteRT",
    "ncnn": "ncnn",
    "executorch": "ExecuTorch",
}
THREADS = 2
DEVICE_TARGET = "nvidia"


def cpu_table(campaign: Campaign, paper: Mapping[str, Any]) -> str:
    """Kernels and latency of every model, beside the paper's operators and every rival."""
    models = {model.facts.name: model for model in campaign.models}
    header = [
        "model",
        "operators, paper",
        "kernels, plain IREE",
        "SmartMem",
        "ms: SmartMem",
        "plain IREE",
        *RIVALS.values(),
    ]
    rows = []
    ratios: dict[str, list[float]] = {engine: [] for engine in ("iree", *RIVALS)}
    for name, card in CARDS.items():
        if name not in models:
            continue
        operators = paper.get(name, {}).get("operators", {}).get("SmartMem")
        counts = {m.engine: m.counts.kernels for m in counted(models[name]) if m.counts is not None}
        kernels = [counts.get(engine, "") for engine in ("iree", "smartmem")]
        cells = {engine: find(models[name], engine, THREADS) for engine in ("smartmem", "iree", *RIVALS)}
        times = {engine: cell.median_ms if cell else None for engine, cell in cells.items()}
        best = min((time for time in times.values() if time is not None), default=None)
        rows.append(
            [
                card.title,
                str(operators or ""),
                *map(str, kernels),
                *(latency_cell(cell, best) for cell in cells.values()),
            ]
        )
        ours = times["smartmem"]
        for engine, values in ratios.items():
            if ours is not None and (theirs := times[engine]) is not None:
                values.append(theirs / ours)
    means = [f"{geometric_mean(values):.2f}× of {len(values)}" if values else "" for values in ratios.values()]
    rows.append(["*their time over ours, geometric mean*", "", "", "", "", *means])
    return table(header, rows)


def h200_table(results: Mapping[str, Any]) -> str:
    """Kernels, device time and wall time on the GPU."""
    rows = []
    rows_of_device = [r for r in results["rows"] if r.get("target", DEVICE_TARGET) == DEVICE_TARGET]
    by_module = {(r["model"], r["baseline"], r["dtype"], r["entry"]): r for r in rows_of_device}
    rival = {(r["model"], r["dtype"]): r for r in results["ncnn"]["rows"]}
    for name, card in CARDS.items():
        plain, ours = by_module.get((name, True, "f32", "plain")), by_module.get((name, False, "f32", "plain"))
        fast, half = by_module.get((name, False, "f32", "in-place")), by_module.get((name, False, "f16", "in-place"))
        kernels = fast or ours
        if kernels is None:
            continue
        rows.append(
            [
                *(card.title, str((plain or {}).get("kernels", "")), str(kernels["kernels"])),
                *(_ms(plain, "device_ms"), _ms(kernels, "device_ms")),
                *(_ms(plain, "ms"), _ncnn(rival.get((name, "f32"))), _ms(ours, "ms"), _ms(fast, "ms")),
                *(_ncnn(rival.get((name, "f16"))), _ms(half, "device_ms"), _ms(half, "ms")),
            ]
        )
    header = ["model", "kernels: plain IREE", "SmartMem", "device ms: plain IREE", "SmartMem", "call: plain IREE"]
    header += ["ncnn", "SmartMem", "in place", "f16: ncnn", "SmartMem, device", "in place"]
    return table(header, rows)


def _ncnn(row: Mapping[str, Any] | None) -> str:
    return "" if row is None else f"{row['ms']:.3g}" if "ms" in row else "fails"


def _ms(row: Mapping[str, Any] | None, key: str) -> str:
    if row is None:
        return ""
    if "error" in row:
        return "fails"
    wrong = not row["relative_l2"] < (1e-4 if row["dtype"] == "f32" else 5e-3)
    return (f"{row[key]:.3g}" if key in row else "") + (" (wrong)" if wrong else "")


def render(text: str) -> str:
    """The README with its tables made anew."""
    campaign = read_json(RESULTS / "cpu.json")
    paper = yaml.safe_load((ROOT / "benchmarks" / "paper.yaml").read_text())
    tables = {
        "cpu": cpu_table(campaign, paper),
        "h200": h200_table(json.loads((RESULTS / "h200_shaders.json").read_text())),
    }
    for name, made in tables.items():
        begin, end = f"<!-- {name}: benchmarks/readme_tables.py -->\n", f"\n<!-- /{name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"the README has no place for the table '{name}'")
        text = pattern.sub(lambda _, made=made, begin=begin, end=end: f"{begin}\n{made}\n{end}", text)  # type: ignore[misc]
    return text


def main() -> int:
    """Exit code: 0, or 1 if the README differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    readme = ROOT / "README.md"
    before = readme.read_text()
    after = render(before)
    if options.check:
        return int(after != before)
    readme.write_text(after)
    return 0


if __name__ == "__main__":
    sys.exit(main())

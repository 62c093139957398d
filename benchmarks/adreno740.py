"""Predicts the latency of the paper's models on the paper's phone from our compiled kernels, beside what it measured.

    python benchmarks/adreno740.py models/*.onnx

The files are the zoo's, by their names; others are left out. Writes `results/adreno740.json` and `.md`, row by row, so
that it goes on where it was stopped (`--again` computes rows anew). Ours and plain IREE are compiled for the target in
f16 as far as IREE's flow IR, where kernels are formed: one minute a model, no back end.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from smartmem_mlir import api
from smartmem_mlir.bench.phone import (
    VARIANTS,
    PhoneModel,
    Row,
    Variant,
    agreement,
    markdown,
    predict_variant,
    roofline_of,
)
from smartmem_mlir.errors import SmartMemError

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Predicts and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--target", default="adreno740", help="a target with a roofline (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="compute rows that are there already")
    parser.add_argument("-o", dest="output", type=Path, default=HERE / "results" / "adreno740.json")
    options = parser.parse_args()
    paper = yaml.safe_load((HERE / "paper.yaml").read_text())
    paper_ms = {name: row["latency_ms"]["SmartMem"] for name, row in paper.items() if "latency_ms" in row}
    rows = _read(options.output)
    try:
        device = roofline_of(options.target)
        for file in options.models:
            if file.stem not in paper_ms or (file.stem in rows and not options.again):
                continue
            started = time.monotonic()
            model = PhoneModel(file, options.target)
            rows[file.stem] = {variant: predict_variant(model, variant, device) for variant in VARIANTS}
            print(f"{file.stem}: {time.monotonic() - started:.0f} s", flush=True)
            rows = {name: rows[name] for name in paper_ms if name in rows}
            _write(options.output, options.target, rows, paper_ms)
        _write(options.output, options.target, rows, paper_ms)
    except SmartMemError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _read(path: Path) -> dict[str, Row]:
    if not path.exists():
        return {}
    content = json.loads(path.read_text())["models"]
    return {
        name: {variant: Variant.model_validate(row[variant]) for variant in VARIANTS} for name, row in content.items()
    }


def _write(path: Path, target: str, rows: dict[str, Row], paper_ms: dict[str, float]) -> None:
    agreed = agreement(rows, paper_ms)
    content: dict[str, Any] = {
        "target": target,
        "roofline": roofline_of(target).model_dump(),
        "tools": api.tool_versions(),
        "agreement": agreed,
        "models": {
            name: {"paper_ms": paper_ms[name]}
            | {variant: row[variant].model_dump(exclude_defaults=True) for variant in VARIANTS}
            for name, row in rows.items()
        },
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    path.with_suffix(".md").write_text(markdown(rows, paper_ms, agreed) + "\n")


if __name__ == "__main__":
    sys.exit(main())

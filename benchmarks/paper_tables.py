"""The paper's tables of operators and layout transformations, ours beside them, from one or more campaigns.

    python benchmarks/paper_tables.py results/cpu/results.json > results/paper.md

A model is matched by its file's name, which is the zoo's name (`sd-unet.onnx`, also `sd_unet.onnx`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from smartmem_mlir.bench.iree_variants import BASELINE, OURS
from smartmem_mlir.bench.report import read_json
from smartmem_mlir.bench.results import Counts, ModelResult
from smartmem_mlir.bench.tables import counted, table
from smartmem_mlir.errors import SmartMemError

PAPER = Path(__file__).resolve().with_name("paper.yaml")
_FRAMEWORKS = ("graph", "MNN", "ncnn", "TFLite", "TVM", "DNNFusion", "SmartMem")


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS.JSON")
    paper: dict[str, dict[str, Any]] = yaml.safe_load(PAPER.read_text())
    try:
        models = [model for path in parser.parse_args().results for model in read_json(path).models]
    except SmartMemError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(comparison(paper, {model.facts.name.replace("_", "-"): model for model in models}))
    return 0


def comparison(paper: dict[str, dict[str, Any]], models: dict[str, ModelResult]) -> str:
    """Both tables as Markdown.

    Args:
        paper: The paper's figures by model.
        models: Ours by the same names; those without counts are shown as missing.
    """
    operators, movement = [], []
    for name, figures in paper.items():
        plain, ours = (_counts(models.get(name), engine) for engine in (BASELINE, OURS))
        theirs = figures.get("operators", {})
        if theirs:
            cells = [str(theirs.get(framework, "")) for framework in _FRAMEWORKS]
            operators.append([name, *cells, *(str(c.kernels) if c else "" for c in (plain, ours))])
        movement.append([name, str(figures.get("transforms", "")), *_movement(plain), *_movement(ours)])
    return "\n\n".join(
        [
            "# The paper's tables, ours beside them",
            "Theirs: operators on a phone's GPU. Ours: kernels (IREE dispatches) on the campaign's target. A kernel is "
            "what is launched, so the last columns compare with the paper's optimised columns, not with its graph.",
            "## Operators and kernels (Table 7)",
            table(["model", *_FRAMEWORKS, "plain IREE, kernels", "ours, kernels"], operators),
            "## Layout transformations (Table 1) before and after",
            "The paper counts MNN's transformations before; it has no count after. Ours are data-movement kernels, and "
            "MB that they read and write, in plain IREE and in ours; bytes of copies outside kernels are added.",
            table(["model", "paper: MNN", "plain IREE", "its MB", "ours", "our MB"], movement),
        ]
    )


def _counts(model: ModelResult | None, engine: str) -> Counts | None:
    if model is None:
        return None
    return next((m.counts for m in counted(model) if m.engine == engine), None)


def _movement(counts: Counts | None) -> list[str]:
    if counts is None:
        return ["", ""]
    return [str(counts.movement_kernels), f"{(counts.movement_bytes + counts.copy_bytes) / 1e6:.2f}"]


if __name__ == "__main__":
    sys.exit(main())

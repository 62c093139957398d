"""The paper's tables of operators and layout transformations, ours beside them.

    python benchmarks/paper_tables.py results/counts-full.json > results/paper.md

From a table of counts (`check.py --models`) or from campaigns (`smartmem bench`), one or more; the last counts.

A model is matched by its file's name, which is the zoo's name (`sd-unet.onnx`, also `sd_unet.onnx`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from smartmem_mlir.bench.counts import read_table
from smartmem_mlir.bench.iree_variants import BASELINE, OURS
from smartmem_mlir.bench.report import read_json
from smartmem_mlir.bench.results import Counts, ModelResult
from smartmem_mlir.bench.tables import counted, table
from smartmem_mlir.errors import InvalidModelError, SmartMemError

PAPER = Path(__file__).resolve().with_name("paper.yaml")
_FRAMEWORKS = ("graph", "MNN", "ncnn", "TFLite", "TVM", "DNNFusion", "SmartMem")


Pair = tuple[Counts | None, Counts | None]
"""Counts of plain IREE and of ours."""


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path, metavar="RESULTS.JSON")
    paper: dict[str, dict[str, Any]] = yaml.safe_load(PAPER.read_text())
    pairs: dict[str, Pair] = {}
    try:
        for path in parser.parse_args().results:
            pairs |= _read(path)
    except SmartMemError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(comparison(paper, pairs))
    return 0


def comparison(paper: dict[str, dict[str, Any]], pairs: dict[str, Pair]) -> str:
    """All tables as Markdown.

    Args:
        paper: The paper's figures by model.
        pairs: Ours by the same names; those without counts are shown as missing.
    """
    operators, movement, traffic = [], [], []
    for name, figures in paper.items():
        plain, ours = pairs.get(name, (None, None))
        theirs = figures.get("operators", {})
        if theirs:
            cells = [str(theirs.get(framework, "")) for framework in _FRAMEWORKS]
            operators.append([name, *cells, *(str(c.kernels) if c else "" for c in (plain, ours))])
        movement.append([name, str(figures.get("transforms", "")), *_movement(plain), *_movement(ours)])
        movement[-1].append(_percent(_moved(ours), _moved(plain)))
        traffic.append([name, _megabytes(_all(plain)), _megabytes(_all(ours)), _percent(_all(ours), _all(plain))])
    return "\n\n".join(
        [
            "# The paper's tables, ours beside them",
            "Theirs: operators on a phone's GPU. Ours: kernels (IREE dispatches) on the target of the measurement. A "
            "kernel is what is launched, so the last columns compare with the paper's optimised columns, not with its "
            "graph.",
            "## Operators and kernels (Table 7)",
            table(["model", *_FRAMEWORKS, "plain IREE, kernels", "ours, kernels"], operators),
            "## Layout transformations (Table 1) before and after",
            "The paper counts MNN's transformations before; it has no count after. Ours are data-movement kernels, and "
            "MB that they read and write, in plain IREE and in ours; bytes of copies outside kernels are added.",
            table(["model", "paper: MNN", "plain IREE", "its MB", "ours", "our MB", "of plain"], movement),
            "## Memory traffic (in place of Fig. 7's counters)",
            "MB that all kernels and copies read and write in one inference, by their shapes.",
            table(["model", "plain IREE, MB", "ours, MB", "of plain"], traffic),
        ]
    )


def _read(path: Path) -> dict[str, Pair]:
    """Counts by model, from a table of counts or a campaign."""
    try:
        entries = read_table(path).models
    except InvalidModelError:
        return {model.facts.name.replace("_", "-"): _counts(model) for model in read_json(path).models}
    return {
        name.replace("_", "-"): (entry["baseline"].counts, entry["smartmem"].counts) for name, entry in entries.items()
    }


def _counts(model: ModelResult) -> Pair:
    by_engine = {m.engine: m.counts for m in counted(model)}
    return by_engine.get(BASELINE), by_engine.get(OURS)


def _movement(counts: Counts | None) -> list[str]:
    return ["", ""] if counts is None else [str(counts.movement_kernels), _megabytes(_moved(counts))]


def _moved(counts: Counts | None) -> int | None:
    return None if counts is None else counts.movement_bytes + counts.copy_bytes


def _all(counts: Counts | None) -> int | None:
    return None if counts is None else counts.total_bytes + counts.copy_bytes


def _megabytes(count: int | None) -> str:
    return "" if count is None else f"{count / 1e6:.2f}"


def _percent(part: int | None, whole: int | None) -> str:
    return "" if part is None or not whole else f"{100 * part / whole:.1f}%"


if __name__ == "__main__":
    sys.exit(main())

"""How layouts are chosen for whole models: proof, time, modelled cost by the paper's rule and by the solver.

    python benchmarks/layouts.py models/*.onnx                            # decide only: seconds a model
    python benchmarks/layouts.py models/*.onnx --measure resnet50 vit     # and compile and time these, on one core

Writes `results/layouts.json` and `results/layouts.md`. What is measured is one inference with IREE's synchronous
driver, on one core, of four modules that are compiled first and then take turns: eliminated only, with layouts, with
layouts and kernels (the ablation), and with kernels by the paper's rule; the median of the rounds' best counts.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from smartmem_mlir import api
from smartmem_mlir.iree.compiler import CompilerOptions
from smartmem_mlir.iree.isolation import lower_isolated
from smartmem_mlir.layouts.decision import LayoutDecision
from smartmem_mlir.targets import Pipeline, load_pipeline, load_target

RESULTS = Path(__file__).resolve().parent / "results"
PASS = "smartmem-select-layouts"
ROUNDS = 3

MODULES: dict[str, dict[str, Any]] = {
    "eliminate": {"pipeline": "cpu-eliminate"},
    "layouts": {"pipeline": "cpu-layouts", "layouts": "solver"},
    "kernels": {"pipeline": "cpu", "layouts": "solver"},
    "kernels, paper's rule": {"pipeline": "cpu", "layouts": "paper"},
}


def until_layouts(pipeline: Pipeline) -> Pipeline:
    """The pipeline up to the choice of layouts, by the solver."""
    at = next(i for i, spec in enumerate(pipeline.passes) if spec.name == PASS)
    cut = pipeline.model_copy(update={"passes": pipeline.passes[: at + 1]})
    return cut.with_option(PASS, "layouts", "solver")


def decide(model: Path, target_name: str) -> LayoutDecision:
    """What is decided for a model's main function."""
    target = load_target(target_name)
    imported = api.import_model(model, api.CompileOptions(), lambda stage: None)
    pipeline = until_layouts(load_pipeline(target.pipeline))
    lowered = lower_isolated(imported.module, pipeline, target, CompilerOptions(), emit=False)
    (decision,) = lowered.record.layouts
    return decision


def measure(model: Path, target: str, cpu: int) -> dict[str, dict[str, float]]:
    """Kernels, distance from the reference and milliseconds of each module."""
    with tempfile.TemporaryDirectory() as name:
        compiled = {
            label: api.compile(model, Path(name) / str(number), target=target, **options)
            for number, (label, options) in enumerate(MODULES.items())
        }
        found: dict[str, dict[str, float]] = {}
        for label, module in compiled.items():
            verified = module.verify(seeds=(0,))
            distance = max(difference.relative_l2 for difference in verified.by_seed[0])
            found[label] = {"kernels": module.report.flow.kernels, "relative_l2": distance}
        best: dict[str, list[float]] = {label: [] for label in compiled}
        for _ in range(ROUNDS):
            for label, module in compiled.items():
                best[label].append(best_ms(module, cpu))
        for label, times in best.items():
            found[label]["ms"] = round(statistics.median(times), 3)
    return found


def best_ms(module: api.CompiledModel, cpu: int) -> float:
    """The best time of one inference on one core."""
    inputs = ["x".join(map(str, (*info.shape, info.dtype))) for info in module.report.inputs]
    command = [
        *("taskset", "-c", str(cpu), str(Path(sys.executable).parent / "iree-benchmark-module")),
        *(f"--module={module.path / 'model.vmfb'}", f"--parameters=model={module.path / 'params.irpa'}"),
        *(f"--input={text}={'0.5' if 'f32' in text else '1'}" for text in inputs),
        *("--device=local-sync", "--function=main", "--benchmark_repetitions=5", "--benchmark_min_time=0.2s"),
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"/real_time\s+([\d.]+) (ns|us|ms|s) ", text)
    return min(float(value) * {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}[unit] for value, unit in found)


def table(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [
        "# One layout per tensor, chosen for the whole model",
        "",
        "Modelled milliseconds of one inference on one core by the target's rates; the gap is what is not proved.",
        "`benchmarks/layouts.py` makes this table; [README.md](README.md) says how.",
        "",
        "| model | tensors | not as written | candidates | status | gap | seconds | as written | paper's rule "
        "| solver |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in results["decisions"].items():
        modelled = " | ".join(f"{row[key] / 1e6:.3f}" for key in ("written_ns", "paper_ns", "objective_ns"))
        lines.append(
            f"| {name} | {row['tensors']} | {row['permuted']} | {row['candidates']} | {row['status']} "
            f"| {row['gap']:.2%} | {row['seconds']:.2f} | {modelled} |"
        )
    if results["measured"]:
        lines += [
            "",
            "Measured milliseconds on one core, with the number of kernels:",
            "",
            "| model | " + " | ".join(MODULES) + " |",
            "|---|" + "---|" * len(MODULES),
        ]
        for name, row in results["measured"].items():
            cells = (f"{row[label]['ms']:.2f} ({row[label]['kernels']})" for label in MODULES)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Decides, measures and writes both files; models that are not named keep their rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--measure", nargs="*", default=[], metavar="NAME", help="models to compile and time")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--prefix", default="", help="put before the names of the models, for small variants")
    parser.add_argument("--cpu", type=int, default=0, help="the core to run on")
    options = parser.parse_args()
    for model in options.models:
        name = f"{options.prefix}{model.stem}"
        print(name, flush=True)
        decision = asdict(decide(model, options.target))
        del decision["layouts"]
        write("decisions", name, decision)
        if model.stem in options.measure:
            write("measured", name, measure(model, options.target, options.cpu))


def write(part: str, name: str, row: dict[str, Any]) -> None:
    """Puts a row into both files at once, so that what is cut short is not lost."""
    path = RESULTS / "layouts.json"
    results = json.loads(path.read_text()) if path.exists() else {"decisions": {}, "measured": {}}
    results["tools"] = api.tool_versions()
    results[part] = dict(sorted({**results[part], name: row}.items()))
    path.write_text(json.dumps(results, indent=1) + "\n")
    path.with_suffix(".md").write_text(table(results))


if __name__ == "__main__":
    main()

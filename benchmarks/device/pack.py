"""Compiles models for a device elsewhere and packs them without their weights.

    python benchmarks/device/pack.py -o PACK --target nvidia --target vulkan model.onnx ...

Writes PACK/MODEL.json (how to make the weights), PACK/MODEL.npz (weights that cannot be made, inputs and ONNX Runtime's
outputs) and PACK/MODEL-TARGET-LEVEL-VARIANT-DTYPE-ENTRY/ (the compiled directory without `params.irpa`) for plain IREE
and for ours.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from weights import reseed

import smartmem_mlir
from smartmem_mlir import ingress
from smartmem_mlir.api import CompileOptions, compilation
from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.iree.isolation import LoweredModule, lower_isolated
from smartmem_mlir.report.inputs import random_inputs

SEEDS = (0, 1)
_PROTOBUF_BYTES = 1 << 30
"""More weights go into a file of their own: a model in one file may have 2 GB."""
VARIANTS = ["iree", "smartmem", "smartmem-buffer", "smartmem-image"]
"""Plain IREE; ours as the target says; ours with tensors in buffers, and in images where they can be."""


def pack(path: Path, out: Path, choices: list[tuple[str, str | None, str, str, str]]) -> None:
    """Packs one model for every choice of target, level, variant, dtype and entry that compiles."""
    model = onnx.load(path)
    recipe = reseed(model)
    with tempfile.TemporaryDirectory() as temporary:
        reseeded = Path(temporary) / path.name
        large = sum(len(tensor.raw_data) for tensor in model.graph.initializer) > _PROTOBUF_BYTES
        onnx.save(model, reseeded, save_as_external_data=large, location=f"{path.name}.data")
        imported = ingress.load(reseeded, ingress.ImportOptions())
        kept = {key: p for key, p in imported.parameters.items() if key not in recipe}
        arrays = {f"weight:{key}": parameter.load() for key, parameter in kept.items()}
        session = onnxruntime.InferenceSession(reseeded)
        for seed in SEEDS:
            given = random_inputs(imported.inputs, seed)
            feeds = {spec.name: value for spec, value in zip(imported.inputs, given, strict=True)}
            for spec, value in zip(imported.outputs, session.run(None, feeds), strict=True):
                arrays[f"output:{seed}:{spec.name}"] = value
        np.savez_compressed(out / f"{path.stem}.npz", **arrays)
        order = list(imported.parameters)
        (out / f"{path.stem}.json").write_text(json.dumps({"recipe": recipe, "order": order, "seeds": SEEDS}))
        for target, level, variant, dtype, entry in choices:
            options = CompileOptions(
                target=target,
                baseline=variant == "iree",
                opt_level=level,  # type: ignore[arg-type]
                storage=variant.partition("-")[2] or None,  # type: ignore[arg-type]
                dtype=dtype if dtype != "f32" else None,  # type: ignore[arg-type]
                entry=entry,  # type: ignore[arg-type]
            )
            name = f"{path.stem}-{target}-{level or 'default'}-{variant}-{dtype}-{entry}"
            try:
                with recorded() as lowered:
                    smartmem_mlir.compile(reseeded, out / name, options=options, force=True)
            except SmartMemError as error:
                print(f"{name}: {error}", flush=True)
                shutil.rmtree(f"{out / name}.reproducer", ignore_errors=True)
                continue
            (out / name / "params.irpa").unlink()
            (out / name / "weights.json").write_text(json.dumps(stored_weights(lowered[-1])))
            print(f"{name}: packed", flush=True)


@contextmanager
def recorded() -> Iterator[list[LoweredModule]]:
    """What compilations meanwhile lower their models to."""
    found: list[LoweredModule] = []

    def lower(*arguments: Any, **named: Any) -> LoweredModule:
        found.append(lower_isolated(*arguments, **named))
        return found[-1]

    compilation.lower_isolated = lower
    try:
        yield found
    finally:
        compilation.lower_isolated = lower_isolated


def stored_weights(lowered: LoweredModule) -> dict[str, tuple[str, str] | None]:
    """The weights that the module reads; for a view of another weight, that weight's name and the view."""
    return {
        key: None if derived is None else (derived.source, derived.view) for key, derived in lowered.parameters.items()
    }


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--target", action="append", required=True)
    parser.add_argument("--opt-level", action="append", help="repeat for several; by default the target's own")
    parser.add_argument("--variant", action="append", choices=VARIANTS, help="repeat for several; default: two")
    parser.add_argument("--dtype", action="append", choices=["f32", "f16"], help="repeat for both; default: f32")
    parser.add_argument(
        "--entry", action="append", choices=["plain", "in-place"], help="repeat for both; default: plain"
    )
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    choices = list(
        itertools.product(
            arguments.target,
            arguments.opt_level or [None],
            arguments.variant or VARIANTS[:2],
            arguments.dtype or ["f32"],
            arguments.entry or ["plain"],
        )
    )
    for path in arguments.models:
        pack(path, arguments.output, choices)


if __name__ == "__main__":
    main()

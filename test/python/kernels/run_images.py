"""Runs programs with tensors in images, in a process of its own: the layer is enabled with the first Vulkan device.

    run_images.py FOLDER VARIANT

Writes results to FOLDER/results.npz, the lowered module to FOLDER/lowered.mlir, and where each tensor is to
FOLDER/memories.json.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import numpy as np
from compiled import CompiledPrograms, vulkan_device
from texel_programs import PROGRAMS, VARIANTS, build

from smartmem_mlir.iree.image_layer import enable
from smartmem_mlir.transforms.evidence import recording


def main() -> None:
    """Compiles and runs every program of a variant."""
    enable()
    folder, variant = Path(sys.argv[1]), VARIANTS[sys.argv[2]]
    device = {name: variant.edit(text) for name, text in vulkan_device(1024).items()}
    programs = [build(name) for name in PROGRAMS]
    with recording() as evidence:
        compiled = CompiledPrograms(
            programs, folder, device, "paper", "vulkan", "vulkan", "vulkan", storage=variant.storage
        )
    (folder / "lowered.mlir").write_text(compiled.lowered)
    (folder / "memories.json").write_text(json.dumps([asdict(memory) for memory in evidence.memories]))
    results = {program.name: compiled.run(program)[0] for program in programs}
    np.savez(folder / "results.npz", **results)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()

"""Compiles programs with tensors in images, and runs them, each in a process of its own.

    run_images.py compile FOLDER VARIANT
    run_images.py run FOLDER

The first writes FOLDER/module.vmfb, the lowered module to FOLDER/lowered.mlir and where each tensor is to
FOLDER/memories.json; the second, which enables the image layer with the first Vulkan device, FOLDER/results.npz.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transforms"))

import numpy as np
from compiled import CompiledPrograms, LoadedPrograms, vulkan_device
from texel_programs import PROGRAMS, VARIANTS, build

from smartmem_mlir.iree.image_layer import enable
from smartmem_mlir.transforms.evidence import recording


def compile_variant(folder: Path, name: str) -> None:
    """Compiles every program as a variant says."""
    variant = VARIANTS[name]
    device = {attribute: variant.edit(text) for attribute, text in vulkan_device(1024).items()}
    programs = [build(program) for program in PROGRAMS]
    with recording() as evidence:
        compiled = CompiledPrograms(
            programs, folder, device, "paper", "vulkan", "vulkan", "vulkan", storage=variant.storage
        )
    (folder / "lowered.mlir").write_text(compiled.lowered)
    (folder / "memories.json").write_text(json.dumps([asdict(memory) for memory in evidence.memories]))


def run(folder: Path) -> None:
    """Runs every program."""
    enable()
    programs = [build(name) for name in PROGRAMS]
    loaded = LoadedPrograms(folder / "module.vmfb", programs[0], "vulkan")
    np.savez(folder / "results.npz", **{program.name: loaded.run(program)[0] for program in programs})  # type: ignore[arg-type]


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        compile_variant(Path(sys.argv[2]), sys.argv[3])
    else:
        run(Path(sys.argv[2]))

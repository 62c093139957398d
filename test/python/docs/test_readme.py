"""Every command of the README runs as it stands, in its order, on a small model; those that do not are named here."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from blocks import ROOT, Block, blocks_of, run

from smartmem_mlir.zoo import materialize

README = ROOT / "README.md"
SMALL = ROOT / "test" / "cases" / "zoo" / "resnet50.onnx"

NOT_RUN = {
    "make demo": "sets up an environment over the network; .ci/run runs it",
    "make test": "runs this test; .ci/run runs it",
    "source .venv/bin/activate": "the commands are those of the environment that runs the test",
    "model = smartmem_mlir.compile(torch_module, (image,))": "needs PyTorch; test/python/api/test_torch_backend.py",
    'fast = torch.compile(torch_module, backend="smartmem")': "needs PyTorch; test/python/api/test_torch_backend.py",
}
"""Lines of blocks that are not executed, without their comments, and why."""


def split() -> tuple[list[Block], list[str]]:
    """The blocks with what runs, and the lines that do not."""
    kept, left_out = [], []
    for block in blocks_of(README):
        lines = block.text.splitlines()
        bare = [re.sub(r"\s+# .*$", "", line) for line in lines]
        left_out += [line for line in bare if line in NOT_RUN]
        runs = [line for line, stripped in zip(lines, bare, strict=True) if stripped not in NOT_RUN]
        if any(runs):
            kept.append(Block(block.kind, "\n".join(runs) + "\n"))
    return kept, left_out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the README's model, whose batch is dynamic, and its image."""
    materialize(SMALL, tmp_path / "small.onnx")
    model = onnx.load(tmp_path / "small.onnx")
    (image,) = model.graph.input
    shape = [dim.dim_value for dim in image.type.tensor_type.shape.dim]
    image.type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, tmp_path / "model.onnx")
    np.save(tmp_path / "image.npy", np.random.default_rng(0).random(shape, dtype=np.float32))
    return tmp_path


def test_every_block_is_of_a_kind_that_runs_and_every_exception_is_there() -> None:
    kept, left_out = split()
    assert {block.kind for block in kept} == {"sh", "python"}
    assert sorted(left_out) == sorted(NOT_RUN), "an exception that the README does not have any more"
    commands = re.findall(r"^smartmem (\w+)", "".join(block.text for block in kept), re.MULTILINE)
    assert {"compile", "verify", "inspect", "explain", "check", "run"} <= set(commands)


@pytest.mark.vulkan
@pytest.mark.slow
@pytest.mark.parametrize("target", ["vulkan", "cpu"])
def test_the_commands_run(folder: Path, target: str) -> None:
    """For Vulkan as they stand; for the CPU, which a comment names, without Python and passes, which are the same."""
    kept, _ = split()
    for block in kept:
        assert block.kind == "python" or "smartmem" in block.text
        text = block.text.replace("smartmem compile model.onnx", "smartmem compile model.onnx --dim batch=1")
        if target == "vulkan":
            prelude = 'import numpy as np\nimage = np.load("image.npy")\n' if block.kind == "python" else ""
            run(Block(block.kind, prelude + text), folder)
        elif "--target vulkan" in text:
            run(Block(block.kind, text.replace("--target vulkan", f"--target {target}")), folder)
    report = (folder / "model.dir" / "report.json").read_text()
    # The block in Python comes last and compiles for the CPU into the same directory.
    assert '"backend": "llvm-cpu"' in report
    if target == "vulkan":
        assert (folder / "import.mlir").is_file()

"""Long chains end, and large graphs stay cheap."""

from __future__ import annotations

import subprocess
import sys

import arithmetic as math_
import pytest
from case_programs import linear, partition, reverse, roll2
from mlir import ir
from program import Program, Tensor
from test_differential import PIPELINES, check

from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms.ir_walk import block_operations
from smartmem_mlir.transforms.registry import run_pipeline

SECONDS = 10.0
MEMORY_BYTES = 1 << 30


MEASURE = """
import sys, time
from mlir import ir
from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms.registry import register_passes, run_pipeline

with make_context():
    register_passes()
    module = ir.Module.parse(sys.stdin.read())
    started = time.process_time()
    run_pipeline(module, sys.argv[1])
    seconds = time.process_time() - started
    # Not ru_maxrss, which a process inherits from the one that started it: a test worker may have held gigabytes.
    peak_kib = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    print(seconds, peak_kib * 1024)
"""


def cost(text: str, pipeline: str) -> tuple[float, int]:
    """Processor seconds and peak bytes of a pipeline in a process of its own: what other tests left does not count."""
    command = [sys.executable, "-c", MEASURE, PIPELINES[pipeline].text()]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    seconds, size = done.stdout.split()
    return float(seconds), int(size)


CHAINS: dict[str, tuple[tuple[int, ...], list[list[int]], list[int]]] = {
    "aligned": ((4, 6), [[2, 2], [2, 3]], [2, 0, 3, 1]),
    # 12x18 transposed and read as 12x18 again: a permutation without short digits, whose powers all differ.
    "not aligned": ((12, 18), [[12], [18]], [1, 0]),
    "odd": ((3, 5, 7), [[3], [5], [7]], [2, 0, 1]),
}


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", CHAINS)
def test_a_thousand_reshapes_and_transposes_end(name: str, pipeline: str) -> None:
    shape, digits, order = CHAINS[name]
    p = Program()
    x = p.argument(shape)
    for _ in range(500):
        split = p.expand(x, digits) if len(digits) != sum(map(len, digits)) else x
        turned = p.transpose(split, order)
        flat = p.collapse(turned, [list(range(turned.rank))])
        x = p.expand(flat, [list(shape)])
    p.results.append(math_.unary(p, x))
    with make_context():
        module = ir.Module.parse(p.text())
        assert len(block_operations(module.operation)) > 1000
        run_pipeline(module, PIPELINES[pipeline].text())
        check(module, p, f"after {pipeline}")
    assert cost(p.text(), pipeline)[0] < SECONDS


def windows(p: Program, x: Tensor, by: int) -> Tensor:
    """A block of a window transformer: norm, perhaps a roll, windows, a product, all the way back, residual."""
    image = math_.layer_norm(p, x, [2])
    image = roll2(p, image, -by) if by else image
    rows = p.collapse(partition(p, image, 7), [[0, 1], [2]])
    back = reverse(p, p.expand(linear(p, rows, x.shape[2]), [[4, 49], [x.shape[2]]]), 7, x.shape)
    return math_.binary(p, x, roll2(p, back, by) if by else back)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_five_thousand_operations_take_seconds(pipeline: str) -> None:
    """Measured alone on a 2-core x86-64 server: 3.4 s (`default`) and 5.6 s (`gpu`), 170 MB."""
    p = Program()
    x = p.argument([14, 14, 4])
    for block in range(107):
        x = windows(p, x, 3 if block % 2 else 0)
    p.results.append(x)
    with make_context():
        module = ir.Module.parse(p.text())
        assert len(block_operations(module.operation)) >= 5000
        run_pipeline(module, PIPELINES[pipeline].text())
    seconds, size = cost(p.text(), pipeline)
    assert seconds < SECONDS
    assert size < MEMORY_BYTES

"""Attention kernels compute what the programs that they replace say, compiled by iree-compile and run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import iree.runtime
import numpy as np
import pytest
from attention_programs import Array, AttentionCase
from mlir import ir

from smartmem_mlir.ir import make_context
from smartmem_mlir.iree.compiler import CompilerOptions, run_iree_compile
from smartmem_mlir.iree.vm_module import open_module
from smartmem_mlir.transforms.registry import run_pipeline

FLAGS = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-llvmcpu-stack-allocation-limit=65536",
]
HEADS = {"query": "bmhd", "key": "bnhd", "value": "bnhe", "scores": "bhmn", "output": "bmhe"}


def sizes(b: int, m: int, n: int, d: int, e: int | None = None, **more: int) -> dict[str, int]:
    return {"b": b, "m": m, "n": n, "d": d, "e": d if e is None else e, **more}


CASES = [
    AttentionCase("windows", sizes(2, 49, 49, 32, h=3), **HEADS, bias="hmn", softmax="deferred"),
    AttentionCase("vit", sizes(1, 197, 197, 64), softmax="named"),
    AttentionCase("text", sizes(2, 77, 77, 64), masked="causal", softmax="guarded"),
    AttentionCase("fused_qkv", sizes(2, 17, 17, 24, h=2), **HEADS, fused=True, softmax="deferred"),
    AttentionCase("cross_attention", sizes(1, 20, 77, 40, h=2), **HEADS),
    AttentionCase(
        "grouped_query",
        sizes(1, 9, 21, 16, h=2, g=3),
        query="bhgmd",
        key="bhnd",
        value="bhne",
        scores="bhgmn",
        output="bmhge",
    ),
    AttentionCase("multi_query", sizes(2, 5, 19, 16, h=4), query="bmhd", scores="bhmn", output="bhme"),
    AttentionCase("one_key", sizes(3, 7, 1, 8)),
    AttentionCase("one_query", sizes(3, 1, 50, 16), softmax="deferred"),
    AttentionCase("one_column", sizes(2, 6, 18, 1)),
    AttentionCase("odd_columns", sizes(2, 13, 33, 37, 131), softmax="deferred"),
    AttentionCase("transposed_key", sizes(2, 11, 35, 20), key="bdn"),
    AttentionCase("transposed_value", sizes(2, 11, 35, 20), value="ben", output="bem", softmax="deferred"),
    AttentionCase("scattered", sizes(5, 11, 35, 20), query="dmb", key="ndb", value="neb", output="emb", scores="mbn"),
    AttentionCase("bias_by_column", sizes(2, 10, 23, 8, h=3), **HEADS, bias="mnh"),
    AttentionCase("bias_of_rows", sizes(2, 10, 23, 8), bias="bm"),
    AttentionCase("keys_first", sizes(2, 10, 23, 8), scores="nbm", bias="nm"),
    AttentionCase("initial", sizes(2, 10, 6, 8), initial=True, bias="bn"),
    AttentionCase(
        "two_key_dimensions",
        sizes(2, 10, 6, 8, p=7),
        key="npbd",
        value="bpne",
        scores="bmpn",
        keys="np",
        bias="mn",
        softmax="deferred",
    ),
    AttentionCase("no_batch", sizes(1, 30, 31, 16), query="md", key="nd", value="ne", scores="mn", output="me"),
    AttentionCase("masked_rows", sizes(2, 10, 23, 8), masked="rows"),
    AttentionCase("masked_rows_guarded", sizes(2, 10, 23, 8), masked="rows", softmax="guarded"),
    AttentionCase("long", sizes(2, 70, 1000, 64, 48), softmax="deferred"),
    AttentionCase("long_causal", sizes(1, 1030, 1030, 32), masked="causal"),
    AttentionCase("long_masked_rows", sizes(1, 30, 700, 64), masked="rows"),
    AttentionCase("long_late_keys", sizes(1, 20, 700, 64), masked="late"),
    AttentionCase("long_transposed", sizes(1, 20, 1100, 33), key="bdn", value="ben", output="bem"),
    AttentionCase("large_scores", sizes(1, 8, 40, 16), scale=300.0),
]
CPUS = {"avx512": (16, 32), "avx2": (8, 16), "neon": (4, 32)}

Runner = Callable[[str, list[Array]], Array]


@pytest.fixture(scope="module", params=CPUS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Every case compiled into one module, for the vectors of one kind of CPU (whatever this one has)."""
    lanes, registers = CPUS[request.param]
    folder: Path = tmp_path_factory.mktemp(request.param)
    with make_context(allow_unregistered_dialects=True):
        module = ir.Module.parse("\n".join(case.text(case.name) for case in CASES))
        lower = f"smartmem-lower-groups-to-cpu{{lanes={lanes} registers={registers}}}"
        run_pipeline(module, f"builtin.module(smartmem-form-groups,{lower},smartmem-materialize-views)")
        text = str(module)
    assert text.count('"flow.dispatch"') == len(CASES), "each case is one kernel"
    assert len(re.findall(r"flow\.dispatch.*@attention_", text)) == len(CASES), "which is one for attention"
    (folder / "program.mlir").write_text(text)
    run_iree_compile(folder / "program.mlir", folder / "program.vmfb", FLAGS, CompilerOptions())
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(open_module(context.instance, folder / "program.vmfb"))

    def call(name: str, arguments: list[Array]) -> Array:
        return np.asarray(context.modules.module[name](*arguments).to_host())

    return call


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_result(run: Runner, case: AttentionCase) -> None:
    arguments = case.arguments()
    np.testing.assert_allclose(
        run(case.name, arguments), case.result(arguments), rtol=2e-5, atol=2e-5 * max(1.0, case.scale)
    )

"""Random programs compute the same before and after the passes.

`make fuzz` runs 10,000 of them: SMARTMEM_FUZZ_EXAMPLES sets how many.
"""

from __future__ import annotations

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from interpreter import interpret
from mlir import ir
from program import Program
from random_graphs import programs

from smartmem_mlir.ir import make_context
from smartmem_mlir.targets import load_pipeline
from smartmem_mlir.transforms.registry import run_pipeline

EXAMPLES = int(os.environ.get("SMARTMEM_FUZZ_EXAMPLES", "200"))
PIPELINES = {name: load_pipeline(name) for name in ("default", "gpu")}


def check(module: ir.Module, program: Program, when: str) -> None:
    assert module.operation.verify()
    found = interpret(module, program.name, [argument.array for argument in program.arguments])
    for number, (result, array) in enumerate(zip(program.results, found, strict=True)):
        np.testing.assert_allclose(
            array, result.array, rtol=1e-9, atol=1e-9, equal_nan=False, err_msg=f"result {number} {when}"
        )


def check_pipeline(program: Program, name: str) -> None:
    """Checks the end of the pipeline and, only when that is wrong, where it went wrong."""
    with make_context():
        text = program.text()
        module = ir.Module.parse(text)
        run_pipeline(module, PIPELINES[name].text())
        operations = module.body.operations[0].regions[0].blocks[0].operations
        left = [op for op in operations if "smartmem" in op.name and op.name != "smartmem.group"]
        assert not left, f"{name} leaves {left[0]}"
        try:
            check(module, program, f"after {name}")
        except AssertionError as error:
            module = ir.Module.parse(text)
            done = []
            for spec in PIPELINES[name].passes:
                run_pipeline(module, f"builtin.module({spec.text()})")
                done.append(spec.text())
                check(module, program, f"after {', '.join(done)}")
            raise AssertionError("the pipeline as a whole is wrong, its passes one by one are not") from error


@settings(
    max_examples=EXAMPLES,
    derandomize="SMARTMEM_FUZZ_EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(programs())
def test_programs_compute_the_same(program: Program) -> None:
    with make_context():
        check(ir.Module.parse(program.text()), program, "as written")
    for name in PIPELINES:
        check_pipeline(program, name)

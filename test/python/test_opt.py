"""smartmem-opt and the pass framework, where lit cannot look."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smartmem_mlir.cli.opt import rewrite_arguments

OPT = str(Path(sys.executable).with_name("smartmem-opt"))
MODULE = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n"


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter: MLIR's registries live as long as the process."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


def test_start_up_takes_less_than_a_second():
    """Import, registration and a run, in CPU time: the machine may be busy."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([OPT, "--smartmem-fold-layouts"], input=MODULE, text=True, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime) < 1.0


def test_a_closed_pipe_ends_it_quietly():
    big = "\n".join(f"func.func private @f{i}()" for i in range(20_000))
    process = subprocess.Popen([OPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    try:
        process.stdin.write(big)
        process.stdin.close()
    except BrokenPipeError:
        pass
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == -signal.SIGPIPE


def test_an_interrupt_ends_it_at_once():
    process = subprocess.Popen([OPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(3)  # it waits for its input, inside MLIR
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=10) == -signal.SIGINT


def test_registering_passes_imports_nothing_heavy():
    code = (
        "import sys; from smartmem_mlir.transforms.registry import register_passes; register_passes();"
        "print([m for m in ('islpy', 'onnx', 'onnxruntime', 'torch_mlir', 'iree', 'typer', 'rich', 'pydantic')"
        " if m in sys.modules])"
    )
    assert run_python(code).stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--smartmem-foo{a=1 b=2}"], ["--smartmem-foo=a=1 b=2"]),
        (["-canonicalize{top-down=false}"], ["-canonicalize=top-down=false"]),
        (["--smartmem-foo{}"], ["--smartmem-foo="]),
        (["--smartmem-foo{list={a,b}}"], ["--smartmem-foo=list={a,b}"]),
        # Neither files nor pipelines are flags with options.
        (["a{b}.mlir"], ["a{b}.mlir"]),
        (["--pass-pipeline=builtin.module(cse{x=1})"], ["--pass-pipeline=builtin.module(cse{x=1})"]),
    ],
)
def test_braces_become_mlir_opts_spelling(given, expected):
    assert rewrite_arguments(given) == [*expected, "--mlir-disable-threading"]


def test_threading_is_disabled_once():
    assert rewrite_arguments(["--mlir-disable-threading"]) == ["--mlir-disable-threading"]


def test_pass_manager_parse_knows_our_passes():
    code = """
import mlir.ir as ir
from mlir.passmanager import PassManager
from smartmem_mlir.transforms.registry import register_passes
register_passes(); register_passes()
with ir.Context():
    print(PassManager.parse("builtin.module(func.func(smartmem-print-cost{json=true}),cse)"))
"""
    result = run_python(code)
    assert result.stdout.strip() == "builtin.module(func.func(smartmem-print-cost{json=true}),cse)"


PASSES = '''
from __future__ import annotations
from dataclasses import dataclass
from typing import ClassVar, Literal
import mlir.ir as ir
from smartmem_mlir.errors import OptionError
from smartmem_mlir.ir import make_context
from smartmem_mlir.transforms.pass_base import Pass, PassError, option
from smartmem_mlir.transforms.registry import register_pass, run_pipeline

@dataclass(frozen=True)
class Show(Pass):
    """Shows its options."""
    argument: ClassVar[str] = "smartmem-show"
    anchor: ClassVar[str] = ""
    flag: bool = option(True, "A flag")
    count: int = option(3, "A count")
    rate: float = option(0.5, "A rate")
    name: str = option("x", "A name")
    mode: Literal["fast", "slow"] = option("fast", "A mode")
    limit: int | None = option(None, "A limit")
    names: tuple[str, ...] = option((), "Names")
    sizes: tuple[int, ...] = option((1, 2), "Sizes")
    def run(self, op):
        print(self, op.name)

@dataclass(frozen=True)
class Fail(Pass):
    """Fails in one of three ways."""
    argument: ClassVar[str] = "smartmem-fail"
    how: Literal["error", "bug", "exit"] = option("error", "How")
    def run(self, op):
        if self.how == "bug":
            raise ZeroDivisionError("oops")
        if self.how == "exit":
            raise SystemExit(5)
        raise PassError("cannot do it", op=op.regions[0].blocks[0].operations[0], hint="do otherwise")

register_pass(Show)
register_pass(Fail)
MODULE = "func.func @f() { return }\\nfunc.func @g() { return }"
'''


def run_passes(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs code after the passes above are registered."""
    return run_python(PASSES + code, **environment)


def test_options_reach_the_dataclass_with_their_types():
    pipeline = (
        "func.func(smartmem-show{flag=false count=7 rate=1e-3 name=y mode=slow limit=9 names={a,b} sizes=4,5}),"
        "smartmem-show"
    )
    result = run_passes(f'with make_context(): run_pipeline(ir.Module.parse(MODULE), "builtin.module({pipeline})")')
    changed = "Show(flag=False, count=7, rate=0.001, name='y', mode='slow', limit=9, names=('a', 'b'), sizes=(4, 5))"
    changed += " func.func"
    default = (
        "Show(flag=True, count=3, rate=0.5, name='x', mode='fast', limit=None, names=(), sizes=(1, 2)) builtin.module"
    )
    assert result.stdout.splitlines() == [changed, changed, default], result.stderr


def test_a_pass_writes_itself_as_a_pipeline_element():
    code = """
made = Show(count=7, names=("a", "b"), limit=9, flag=False)
print(made.to_pipeline(), Show().to_pipeline())
with make_context(): run_pipeline(ir.Module.parse(MODULE), f"builtin.module({made.to_pipeline()})")
"""
    first, second = run_passes(code).stdout.splitlines()
    assert first == "smartmem-show{flag=false count=7 limit=9 names={a,b}} smartmem-show"
    assert second.startswith("Show(flag=False, count=7,")
    assert "limit=9, names=('a', 'b')" in second


def test_values_that_need_quotes_survive():
    code = """
made = Show(name="a b's", names=("x y", "z,w", "plain"))
with make_context(): run_pipeline(ir.Module.parse(MODULE), f"builtin.module({made.to_pipeline()})")
try: Show(name="{").to_pipeline()
except OptionError as error: print(error)
"""
    shown, refused = run_passes(code).stdout.splitlines()
    assert '''name="a b's"''' in shown
    assert "names=('x y', 'z,w', 'plain')" in shown
    assert refused.startswith("a pipeline cannot spell the value '{'")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("count=many", "smartmem-show: option 'count' must be an integer, got 'many'"),
        ("count=", "smartmem-show: option 'count' must be an integer, got ''"),
        ("rate=fast", "smartmem-show: option 'rate' must be a number, got 'fast'"),
        ("rate=nan", "smartmem-show: option 'rate' must be a number, got 'nan'"),
        ("mode=medium", "smartmem-show: option 'mode' must be one of fast, slow, got 'medium'"),
        ("limit=none", "smartmem-show: option 'limit' must be an integer, got 'none'"),
        ("sizes={1,x}", "smartmem-show: option 'sizes' must be an integer, got '1,x'"),
        ("cout=3", "smartmem-show: no such option cout; its options are flag, count, rate"),
    ],
)
def test_bad_options_name_the_pass_and_the_legal_ones(options, message):
    code = f"""
with make_context():
    try: run_pipeline(ir.Module.parse(MODULE), "builtin.module(smartmem-show{{{options}}})")
    except OptionError as error: print(error)
"""
    assert message in run_passes(code).stdout


def test_run_pipeline_raises_what_the_pass_raised():
    code = """
with make_context():
    for how in ("error", "bug", "exit"):
        try: run_pipeline(ir.Module.parse(MODULE), f"builtin.module(smartmem-fail{{how={how}}})")
        except BaseException as error: print(type(error).__name__, error)
    try: run_pipeline(ir.Module.parse(MODULE), "builtin.module(nonsense)")
    except OptionError as error: print(type(error).__name__, error)
"""
    lines = run_passes(code).stdout.splitlines()
    assert lines[:3] == ["PassError cannot do it; do otherwise", "ZeroDivisionError oops", "SystemExit 5"]
    assert lines[3].startswith("OptionError cannot parse the pipeline 'builtin.module(nonsense)'")
    assert "'nonsense' does not refer to a registered pass or pass pipeline" in lines[3]


@pytest.mark.parametrize(("debug", "shown"), [("", False), ("1", True)])
def test_a_bug_shows_its_traceback_when_asked(debug, shown):
    code = """
from mlir.passmanager import PassManager
with make_context():
    try: PassManager.parse("builtin.module(smartmem-fail{how=bug})").run(ir.Module.parse(MODULE).operation)
    except ir.MLIRError as error: print(error)
"""
    result = run_passes(code, SMARTMEM_DEBUG=debug)
    assert "smartmem-fail: ZeroDivisionError: oops" in result.stdout
    assert ("Traceback" in result.stdout) is shown
    assert ("set SMARTMEM_DEBUG=1" in result.stdout) is not shown


def test_an_error_points_to_its_operation():
    code = """
from mlir.passmanager import PassManager
with make_context():
    module = ir.Module.parse(MODULE)
    try: PassManager.parse("builtin.module(smartmem-fail)").run(module.operation)
    except ir.MLIRError as error:
        (diagnostic,) = error.error_diagnostics
        print(diagnostic.message); print(diagnostic.location)
"""
    message, location = run_passes(code).stdout.splitlines()
    assert message == "'func.func' op smartmem-fail: cannot do it; do otherwise"
    assert location == 'loc("-":1:1)'


def test_a_multithreaded_context_does_not_deadlock():
    """MLIR would run a function pass on worker threads, which wait for the lock that their waiter holds."""
    code = """
functions = "\\n".join(f"func.func @f{i}() {{ return }}" for i in range(64))
with ir.Context() as context:
    context.enable_multithreading(True)
    run_pipeline(ir.Module.parse(functions), "builtin.module(func.func(cse,smartmem-show,canonicalize))")
"""
    result = run_passes(code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("func.func") == 64


def test_threads_switched_on_again_are_an_error():
    code = """
with ir.Context() as context:
    module = ir.Module.parse(MODULE)
    run_pipeline(module, "builtin.module(func.func(smartmem-show))")
    context.enable_multithreading(True)
    try: run_pipeline(module, "builtin.module(func.func(smartmem-show))")
    except ir.MLIRError as error: print(error.error_diagnostics[0].message)
"""
    result = run_passes(code)
    assert result.stdout.splitlines()[2:] == [
        "smartmem-show cannot run in threads: call context.enable_multithreading(False)"
    ], result.stderr


def test_a_pass_is_registered_once_and_named_ours():
    code = """
for cls in (Show, type("Odd", (Show,), {"argument": "fold"}), type("Taken", (Show,), {"argument": "cse"})):
    try: register_pass(cls)
    except ValueError as error: print(error)
"""
    lines = run_passes(code).stdout.splitlines()
    assert lines[0] == "a pass named 'smartmem-show' is registered already"
    assert lines[1].startswith("a pass is called smartmem-<words>, not 'fold'")
    assert len(lines) == 3


def test_every_pass_is_documented():
    from smartmem_mlir.transforms.registry import KERNEL_PASSES, PASSES, get_passes

    assert list(PASSES) == sorted(PASSES)
    assert len(get_passes()) == len(PASSES) + len(KERNEL_PASSES)
    for argument, cls in get_passes().items():
        assert cls.summary().endswith("."), argument
        assert len(cls.summary()) <= 100, argument
        assert all(option.help for option in cls.options()), argument


def test_crash_free_exit_after_many_runs():
    """Contexts of mlir-opt come and go at one address; Python must not destroy them."""
    text = "\n// -----\n".join(MODULE for _ in range(50))
    result = subprocess.run(
        [OPT, "--split-input-file", "--smartmem-fold-layouts", "--smartmem-print-cost"],
        input=text,
        text=True,
        capture_output=True,
        check=True,
    )
    assert result.stdout.count("func.func @f") == 50
    assert result.stderr.count("@f: 0 conversions") == 50
    assert "leaked" not in result.stderr

"""Run the ONNX backend node tests through the importer, iree-compile for the CPU and a comparison.

    python test/python/ingress/node_cases.py            # all cases; compares with the committed list
    python test/python/ingress/node_cases.py --update   # writes the list
    python test/python/ingress/node_cases.py test_conv  # cases whose name contains a word, with details

The onnx package makes each case in memory: a model of one operator (or of its expansion), inputs, and outputs that the
authors of ONNX computed with NumPy. Operands that decide a shape (Reshape's shape, Slice's starts, ...) come as inputs
there, but are constants in models with static shapes; where the importer refuses them as inputs they are made
constants. Results of compiling and running are cached by module text and data.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import yaml
from onnx import TensorProto

from smartmem_mlir.errors import SmartMemError
from smartmem_mlir.i1_text import unpack_i1
from smartmem_mlir.ingress.isolated_lowering import lower_all
from smartmem_mlir.ingress.model import ImportOptions
from smartmem_mlir.ingress.onnx_importer import static_graph
from smartmem_mlir.ingress.onnx_model.emit import emit_model, parameters_of
from smartmem_mlir.ingress.onnx_model.reader import MIN_OPSET, read_proto
from smartmem_mlir.ingress.onnx_model.tensors import FLOAT_TYPES, NUMPY_TYPES

LIST = Path(__file__).with_name("node_cases.yaml")
CACHE = Path(__file__).parents[3] / "build" / "node_cases.json"
BATCH = 40
"""Cases per compiled module."""

FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O0",  # the cases are about meaning, and there are 1,500 of them
    "--iree-input-demote-f64-to-f32=false",  # the default changes the function's types
)

DATA_DEPENDENT = "only known when the model runs"
"""Part of every refusal that making operands constant can cure."""


@dataclass(frozen=True)
class Case:
    """One backend test with its first data set."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    rtol: float
    atol: float

    @property
    def operator(self) -> str:
        """The first operator of the case's model."""
        names = [n.op_type for n in self.model.graph.node if n.op_type != "Constant"]
        return names[0] if names else "Constant"

    @property
    def subject(self) -> str:
        """The operator that the case is about, also where its model is the operator's expansion."""
        inner = re.match(r"(\w+?)_" + re.escape(self.name) + "_function_", _first_inner_name(self.model))
        return f"{inner[1]} (expanded)" if inner else self.operator


def _first_inner_name(model: onnx.ModelProto) -> str:
    names = (output for node in model.graph.node for output in node.output)
    return next((name for name in names if "_function_" in name), "")


@dataclass(frozen=True)
class Verdict:
    """What became of a case: `pass`, `refused` or `wrong`, with the reason or the error."""

    status: str
    reason: str = ""


def load_cases() -> list[Case]:
    """All node cases of the installed onnx package, by name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    cases = [Case(t.name, t.model, tuple(t.data_sets[0][0]), tuple(t.data_sets[0][1]), t.rtol, t.atol) for t in tests]
    return sorted(cases, key=lambda c: c.name)


def scope(case: Case) -> str:
    """`float`, `index`, or why the case is out of scope.

    A case is in scope when its operator belongs to the default domain and all its inputs and outputs are tensors of
    f16, f32, f64, a signed integer, uint8 or bool. It is a float case when at least one of them is f16, f32 or f64.
    """
    graph = case.model.graph
    domains = {n.domain for n in graph.node} - {"", "ai.onnx"}
    if domains:
        return f"domain {sorted(domains)[0]}"
    elements = set()
    for value in (*graph.input, *graph.output):
        if value.type.WhichOneof("value") != "tensor_type":
            return f"{value.type.WhichOneof('value')} value"
        elements.add(value.type.tensor_type.elem_type)
    for element in sorted(elements):
        if element not in NUMPY_TYPES:
            return f"element type {TensorProto.DataType.Name(element).lower()}"
    return "float" if elements & FLOAT_TYPES else "index"


def model_of(case: Case, constants: Sequence[int]) -> onnx.ModelProto:
    """The case's model, at an opset that we accept, with the inputs of the given positions as initializers."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx") and opset.version < MIN_OPSET and _unchanged(case.model, MIN_OPSET):
            opset.version = MIN_OPSET
    names = [i.name for i in case.model.graph.input]
    for position in constants:
        model.graph.initializer.append(onnx.numpy_helper.from_array(array_of(case.inputs[position]), names[position]))
    inputs = [i for n, i in enumerate(case.model.graph.input) if n not in constants]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    return model


def _unchanged(model: onnx.ModelProto, opset: int) -> bool:
    """Whether all operators mean the same at `opset` as at the model's own."""
    own = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    try:
        return all(
            onnx.defs.get_schema(n.op_type, own).since_version == onnx.defs.get_schema(n.op_type, opset).since_version
            for n in model.graph.node
        )
    except onnx.defs.SchemaError:
        return False


def array_of(value: Any) -> Any:
    """A case's value as an array."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


@dataclass(frozen=True)
class Imported:
    """A case that the importer took: what goes to torch-mlir, and the data to run it with."""

    case: Case
    model: onnx.ModelProto
    arguments: tuple[Any, ...]


def import_case(case: Case) -> Imported | Verdict:
    """Import a case, with all inputs as arguments if that can be, else with those that decide shapes constant."""
    shape_like = [i for i, v in enumerate(case.inputs) if array_of(v).dtype.kind in "iub" and array_of(v).ndim <= 1]
    small = [i for i, v in enumerate(case.inputs) if array_of(v).ndim <= 1]
    attempts: list[Sequence[int]] = [(), shape_like, small]
    refusal = ""
    for constants in attempts:
        model = model_of(case, constants)
        try:
            read = read_proto(model, None)
            graph = static_graph(read, ImportOptions())
        except SmartMemError as error:
            refusal = re.sub(r"^unsupported operators: \S+ x1 \(.*?\): ", "", error.what)
            if DATA_DEPENDENT not in refusal:
                return Verdict("refused", refusal)
            continue
        arguments = tuple(array_of(v) for i, v in enumerate(case.inputs) if i not in constants)
        weights = parameters_of(graph)
        arguments += tuple(weight.load() for weight in weights.values())
        return Imported(case, emit_model(graph, weights), arguments)
    return Verdict("refused", refusal)


def run_cases(cases: Iterable[Case], *, log: bool = True, cached: bool = True) -> dict[str, Verdict]:
    """Import, compile, run and compare cases.

    Args:
        cases: The cases.
        log: Whether to tell progress on stderr.
        cached: Whether to take and keep results of lowering, compiling and running.
    """
    verdicts: dict[str, Verdict] = {}
    imported: list[Imported] = []
    for case in cases:
        result = import_case(case)
        if isinstance(result, Verdict):
            verdicts[case.name] = result
        else:
            imported.append(result)
    if log:
        print(f"{len(imported)} cases imported, {len(verdicts)} refused; lowering", file=sys.stderr)
    cache = json.loads(CACHE.read_text()) if cached and CACHE.exists() else {}
    ready: list[tuple[Imported, str]] = []
    for item, (text, error) in zip(imported, _lower([i.model for i in imported], cache), strict=True):
        if text is None:
            verdicts[item.case.name] = Verdict("refused", error)
        else:
            ready.append((item, text))
    if cached:
        _save(cache)
    keys = {item.case.name: _key(item, text) for item, text in ready}
    todo = [(item, text) for item, text in ready if keys[item.case.name] not in cache]
    for start in range(0, len(todo), BATCH):
        if log:
            print(f"compiling and running: {start} of {len(todo)}", file=sys.stderr)
        for name, verdict in _run_batch(todo[start : start + BATCH]).items():
            cache[keys[name]] = [verdict.status, verdict.reason]
        if cached:
            _save(cache)
    for item, _ in ready:
        verdicts[item.case.name] = Verdict(*cache[keys[item.case.name]])
    return dict(sorted(verdicts.items()))


def _lower(models: Sequence[onnx.ModelProto], cache: dict[str, Any]) -> list[tuple[str | None, str]]:
    """Lower models, each distinct one once and only if it is not in the cache."""
    importer = version("torch-mlir")
    digests = (hashlib.sha256(m.SerializeToString(deterministic=True)).hexdigest() for m in models)
    keys = [f"{digest} {importer}" for digest in digests]
    todo = {key: model for key, model in zip(keys, models, strict=True) if key not in cache}
    for key, lowered in zip(todo, lower_all(list(todo.values()), []), strict=True):
        cache[key] = [lowered.text, lowered.error]
    return [(cache[key][0], cache[key][1]) for key in keys]


def _save(cache: dict[str, Any]) -> None:
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    CACHE.write_text(json.dumps(cache))


def _key(item: Imported, text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for value in (*item.arguments, *item.case.outputs):
        digest.update(array_of(value).tobytes())
    return f"{digest.hexdigest()} {version('iree-base-compiler')} {' '.join(FLAGS)}"


def _run_batch(batch: Sequence[tuple[Imported, str]]) -> dict[str, Verdict]:
    """Compile cases together; if that fails, in halves."""
    with tempfile.TemporaryDirectory() as directory:
        source, binary = Path(directory) / "batch.mlir", Path(directory) / "batch.vmfb"
        source.write_text(_merge([text for _, text in batch]))
        command = [str(Path(sys.executable).with_name("iree-compile")), str(source), "-o", str(binary), *FLAGS]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode == 0:
            return _execute(binary, batch)
    if len(batch) == 1:
        errors = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()[-1:]
        reason = errors[0].split("error:", 1)[-1].strip() if errors else f"exit code {done.returncode}"
        return {batch[0][0].case.name: Verdict("wrong", f"iree-compile: {reason}")}
    middle = len(batch) // 2
    return _run_batch(batch[:middle]) | _run_batch(batch[middle:])


def _merge(texts: Sequence[str]) -> str:
    """One module with the functions of all, `@main` of module N renamed to `@case_N`."""
    from torch_mlir import ir

    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True
        whole = ir.Module.create()
        for n, text in enumerate(texts):
            # The importer writes boolean constants for MLIR 22.
            for operation in ir.Module.parse(unpack_i1(text)).body.operations:
                copied = operation.clone(ip=ir.InsertionPoint(whole.body))
                copied.attributes["sym_name"] = ir.StringAttr.get(f"case_{n}")
        return str(whole)


def _execute(binary: Path, batch: Sequence[tuple[Imported, str]]) -> dict[str, Verdict]:
    """Run each case in a process of its own kind: the whole batch in one, which may not take the others down."""
    import iree.runtime as rt

    config = rt.Config("local-sync")
    vm_module = rt.VmModule.copy_buffer(config.vm_instance, binary.read_bytes())
    module = rt.load_vm_module(vm_module, config)
    verdicts = {}
    for n, (item, _) in enumerate(batch):
        try:
            results = module[f"case_{n}"](*item.arguments)
        except Exception as error:
            verdicts[item.case.name] = Verdict("wrong", f"run: {str(error).splitlines()[0]}")
            continue
        results = results if isinstance(results, tuple) else (results,)
        arrays = [r.to_host() if hasattr(r, "to_host") else np.asarray(r) for r in results]
        verdicts[item.case.name] = compare(item, arrays)
    return verdicts


def compare(item: Imported, results: Sequence[Any]) -> Verdict:
    """Compare with the case's outputs; where they differ, ONNX Runtime decides."""
    expected = [array_of(v) for v in item.case.outputs]
    if len(results) != len(expected):
        return Verdict("wrong", f"{len(results)} results instead of {len(expected)}")
    found = difference(item.case, results, expected)
    if found:
        reference = _onnxruntime(item.case)
        if reference is None or difference(item.case, results, reference):
            return Verdict("wrong", found)
    return Verdict("pass")


def difference(case: Case, results: Sequence[Any], expected: Sequence[Any]) -> str:
    """How results differ from what is expected, beyond the case's tolerance; "" if they do not."""
    for position, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        if result.dtype != wanted.dtype:
            if result.dtype.itemsize != wanted.dtype.itemsize:
                return f"result {position} is {result.dtype} instead of {wanted.dtype}"
            result = result.view(wanted.dtype)
        if result.shape != wanted.shape:
            return f"result {position} has shape {result.shape} instead of {wanted.shape}"
        if wanted.dtype.kind == "f":
            half = wanted.dtype == np.float16
            rtol, atol = max(case.rtol, 4e-3 if half else 0), max(case.atol, 1e-3 if half else 1e-6)
            if not np.allclose(result, wanted, rtol=rtol, atol=atol, equal_nan=True):
                with np.errstate(all="ignore"):
                    error = np.nanmax(np.abs(result.astype(np.float64) - wanted), initial=0)
                return f"result {position} differs by up to {error:.3g}"
        elif not np.array_equal(result, wanted):
            return f"result {position} differs in {int(np.sum(result != wanted))} of {wanted.size} elements"
    return ""


def _onnxruntime(case: Case) -> list[Any] | None:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    try:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [i.name for i in case.model.graph.input]
        return list(session.run(None, dict(zip(names, map(array_of, case.inputs), strict=True))))
    except Exception:  # ONNX Runtime lacks the operator, type or opset: then it decides nothing
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="run the cases whose names contain one of these")
    parser.add_argument("--update", action="store_true", help=f"write {LIST.name}")
    arguments = parser.parse_args()
    cases = load_cases()
    scopes = {c.name: scope(c) for c in cases}
    chosen = [c for c in cases if scopes[c.name] in ("float", "index")]
    if arguments.words:
        chosen = [c for c in chosen if any(w in c.name for w in arguments.words)]
    verdicts = run_cases(chosen)
    for kind in ("float", "index"):
        counts = Counter(v.status for n, v in verdicts.items() if scopes[n] == kind)
        total = sum(counts.values())
        print(f"{kind}: {total} cases, " + ", ".join(f"{k} {n} ({n / total:.1%})" for k, n in counts.items()))
    by_operator = {c.name: c.operator for c in cases}
    for name, verdict in verdicts.items():
        if verdict.status != "pass":
            print(f"{verdict.status:8} {scopes[name]:6} {by_operator[name]:20} {name}: {verdict.reason}")
    document = {
        "onnx": onnx.__version__,
        "cases": {n: v.status if v.status == "pass" else f"{v.status}: {v.reason}" for n, v in verdicts.items()},
        "out of scope": {n: s for n, s in scopes.items() if s not in ("float", "index")},
    }
    if arguments.update:
        LIST.write_text(yaml.safe_dump(document, sort_keys=True, width=200))
        return 0
    return int(any(v.status == "wrong" for v in verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())

"""Compilation: from a model to a directory, or to the module's text at a stage."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smartmem_mlir.api.compiled_model import CompiledModel
from smartmem_mlir.api.options import CompileOptions, Progress, Stage, StageClock, compiler_options, resolve_options
from smartmem_mlir.api.values import as_sequence, example_arrays, onnx_dims
from smartmem_mlir.errors import OptionError
from smartmem_mlir.ingress.model import ImportedModel, ImportOptions
from smartmem_mlir.iree.archive import write_archive
from smartmem_mlir.iree.assumptions import VulkanAssumptions
from smartmem_mlir.iree.build import build, compile_to_flow
from smartmem_mlir.iree.compiler import CompilerOptions
from smartmem_mlir.iree.image_layer import CANARIES, compile_canaries
from smartmem_mlir.iree.isolation import lower_isolated
from smartmem_mlir.iree.storage import read_transient_bytes
from smartmem_mlir.iree.stored_parameters import stored_parameters
from smartmem_mlir.iree.toolchain import COMPILER_PACKAGE, RUNTIME_PACKAGE, package_version
from smartmem_mlir.report import directory
from smartmem_mlir.report.explanation import explain_import, without_locations
from smartmem_mlir.report.inputs import check_inputs
from smartmem_mlir.report.proofs import prove_certificates
from smartmem_mlir.report.schema import Report, SourceInfo, TensorInfo
from smartmem_mlir.targets import Pipeline, TargetDescription, load_target


@dataclass(frozen=True)
class _Plan:
    """What one compilation uses."""

    target: TargetDescription
    pipeline: Pipeline
    options: CompileOptions
    compiler: CompilerOptions


def compile(
    model: Path | str | Any,
    output: Path | str | Sequence[Any] | Any | None = None,
    *,
    example_inputs: Any = None,
    force: bool = False,
    options: CompileOptions | None = None,
    **overrides: Any,
) -> CompiledModel:
    """Compile a model to a directory with `model.vmfb`, `params.irpa`, `report.json` and `model.mlir`.

    >>> f = compile(module, (x,), target="cpu")  # doctest: +SKIP
    >>> y = f(x)  # doctest: +SKIP

    Args:
        model: A path to an `.onnx`, `.pt2` or `.mlir` file, a `torch.nn.Module` (with `example_inputs`), a
            `torch.export.ExportedProgram`, or a pair of a module and its example inputs.
        output: The directory, written whole or not at all; by default `<model>-<target>` in the current one for a
            file, and a temporary one that lives as long as the result for a program in memory. What is neither a
            path nor a string is taken for `example_inputs`.
        example_inputs: A NumPy array or torch tensor, or a tuple or list of them in the model's order. They give a
            module its shapes and types, an ONNX file the sizes of its symbolic dimensions, and are checked against
            every model.
        force: Replace a directory that holds other files.
        options: How to compile.
        overrides: Fields of :class:`CompileOptions`, in place of `options`.

    Returns:
        The model, to be called with arrays or tensors.

    Raises:
        SmartMemError: The model, an option, the device or the disk; see `errors`.
    """
    if output is not None and not isinstance(output, (str, Path)):
        if example_inputs is not None:
            raise OptionError(f"the output is a {type(output).__name__}, not a path")
        output, example_inputs = None, output
    options = resolve_options(options, overrides)
    source, options = _with_examples(model, example_inputs, options)
    keep = None
    if output is None and not isinstance(model, (str, Path)):
        keep = tempfile.TemporaryDirectory(prefix="smartmem.")
        output = Path(keep.name) / "model"
    target = load_target(options.target)
    default = default_output(model, target, options.baseline)
    folder = Path(output) if output is not None else default
    # A reproducer of a compiler that failed outlives a temporary directory.
    plan = _Plan(target, options.load_pipeline(target), options, compiler_options(options, default if keep else folder))
    directory.check_replaceable(folder, force)
    clock = StageClock(options.progress)
    imported = import_model(source, options, clock)
    _refuse_half(imported, target)
    if example_inputs is not None:
        check_inputs(imported.inputs, example_arrays(example_inputs))
    with directory.atomic_directory(folder, force) as staging:
        _write(imported, staging, plan, clock)
    return CompiledModel(folder, keep)


def _with_examples(model: Any, example_inputs: Any, options: CompileOptions) -> tuple[Any, CompileOptions]:
    """What to import, and the options with what example inputs say about a model's dimensions."""
    if isinstance(model, (str, Path)):
        if example_inputs is None or Path(model).suffix != ".onnx" or not Path(model).is_file():
            return model, options
        dims = onnx_dims(Path(model), example_arrays(example_inputs))
        return model, replace(options, dims={**dims, **options.dims})
    from smartmem_mlir.api.torch_programs import export_module, outputs_of

    if isinstance(model, tuple) and len(model) == 2 and example_inputs is None:
        model, example_inputs = model
    if hasattr(model, "graph_signature"):  # an ExportedProgram knows its inputs
        outputs_of(model)
        return model, options
    if example_inputs is None:
        return model, options  # the importer says what it wants
    return export_module(model, as_sequence(example_inputs)), options


def _write(imported: ImportedModel, staging: Path, plan: _Plan, clock: StageClock) -> None:
    """Fills the directory `staging`."""
    target, pipeline, options, compiler = plan.target, plan.pipeline, plan.options, plan.compiler
    with tempfile.TemporaryDirectory() as workspace:
        clock("running passes")
        lowered = lower_isolated(imported.module, pipeline, target, compiler, entry=options.entry)
        source = staging / directory.MODULE
        source.write_text(lowered.text)
        (staging / directory.CERTIFICATES).write_text(lowered.record.certificates)
        if options.check:
            clock("proving rewrites")
            prove_certificates(lowered.record.certificates, None, options.progress)
        clock("writing weights")
        archive = write_archive(staging / directory.PARAMETERS, stored_parameters(imported.parameters, lowered))
        built = build(
            source,
            staging / directory.VMFB,
            Path(workspace),
            target,
            options.opt_level,
            compiler,
            clock,
            options.repair,
            # What plain IREE compiles at a level is a measurement.
            fall_back=not options.baseline,
        )
        has_images = isinstance(built.assumptions, VulkanAssumptions) and built.assumptions.images
        if has_images:
            compile_canaries(staging, compiler)
        clock("writing the report")
        report = Report(
            tools=tool_versions(),
            source=_source_info(imported, options),
            target=target,
            opt_level=built.attempt.opt_level,
            narrowed=built.attempt.narrowed,
            subgroups=built.attempt.subgroups,
            fallbacks=built.fallbacks,
            baseline=options.baseline,
            entry=options.entry,
            transient_bytes=read_transient_bytes(staging / directory.VMFB),
            pipeline=pipeline.name,
            passes=pipeline.text(),
            inputs=tuple(map(TensorInfo.of, imported.inputs)),
            outputs=tuple(map(TensorInfo.of, imported.outputs)),
            weights=archive.tensors,
            weight_bytes=archive.data_bytes,
            assumptions=built.assumptions,
            flow=built.flow,
            repairs=built.repairs,
            misaligned=built.misaligned,
            repaired=options.repair,
            movements=explain_import(imported, lowered.record.fates, options.baseline),
            layouts=lowered.record.layouts,
            memories=lowered.record.memories,
            files={
                name: directory.describe_file(staging / name, hashed=name != directory.PARAMETERS)
                for name in (
                    *(directory.VMFB, directory.PARAMETERS, directory.MODULE, directory.CERTIFICATES),
                    *(CANARIES.values() if has_images else ()),
                )
            },
            seconds=clock.stop(),
        )
        directory.write_report(staging, report)


def emit(model: Path | str | Any, stage: Stage, options: CompileOptions | None = None, **overrides: Any) -> str:
    """The module's text at a stage, without compiling further.

    Args:
        model: As for :func:`compile`.
        stage: One of :data:`STAGES`.
        options: How to compile.
        overrides: Fields of :class:`CompileOptions`.
    """
    options = resolve_options(options, overrides)
    target = load_target(options.target)
    pipeline = options.load_pipeline(target)
    imported = import_model(model, options, options.progress)
    _refuse_half(imported, target)
    if stage == "import":
        return without_locations(imported.module)
    compiler = compiler_options(options, default_output(model, target, options.baseline))
    options.progress("running passes")
    text = lower_isolated(imported.module, pipeline, target, compiler, emit=stage != "passes", entry=options.entry).text
    if stage in ("passes", "iree"):
        return without_locations(text)
    options.progress("forming kernels")
    with tempfile.TemporaryDirectory() as workspace:
        source, flow = Path(workspace) / directory.MODULE, Path(workspace) / "flow.mlir"
        source.write_text(text)
        compile_to_flow(source, flow, target, options.opt_level, compiler)
        return flow.read_text()


def import_model(model: Path | str | Any, options: CompileOptions, progress: Progress) -> ImportedModel:
    """Import a model as the options say; see `ingress.load`."""
    from smartmem_mlir import ingress

    chosen = ImportOptions(dims=dict(options.dims), dtype=options.dtype, trusted=options.trusted)
    return ingress.load(model, chosen, progress)


def _refuse_half(imported: ImportedModel, target: TargetDescription) -> None:
    """IREE would fail on some kernel in words that name neither the type nor the target."""
    if target.vulkan is None or "b16" in target.vulkan.storage:
        return
    specs = (*imported.inputs, *imported.outputs, *(parameter.spec for parameter in imported.parameters.values()))
    half = next((spec for spec in specs if spec.dtype == "f16"), None)
    if half is not None:
        raise OptionError(
            f"'{half.name}' is f16, which the target '{target.name}' does not hold in buffers",
            hint="compile for vulkan-f16, adreno, mali or nvidia, or with --dtype f32",
        )


def default_output(model: Path | str | Any, target: TargetDescription, baseline: bool) -> Path:
    """Where `compile` writes if it is not told: `<model>-<target>[-baseline]`."""
    stem = Path(model).stem if isinstance(model, (str, Path)) else type(model).__name__
    return Path(f"{stem}-{target.name}" + ("-baseline" if baseline else ""))


def tool_versions() -> dict[str, str]:
    """Versions of the packages that decide what comes out."""
    packages = ("smartmem-mlir", "xtc-mlir-python-bindings", "torch-mlir", COMPILER_PACKAGE, RUNTIME_PACKAGE)
    return {package: package_version(package) or "not installed" for package in packages}


def _source_info(imported: ImportedModel, options: CompileOptions) -> SourceInfo:
    path = imported.source.resolve() if imported.source is not None else None
    return SourceInfo(
        name=imported.name,
        kind=imported.kind,
        path=str(path) if path is not None else None,
        sha256=directory.sha256(path) if path is not None else None,
        dims=dict(options.dims),
        dtype=options.dtype,
    )

"""The Python interface: compile a model, open what was compiled, run it, verify it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from smartmem_mlir.errors import InvalidModelError, OptionError
from smartmem_mlir.ingress.model import ImportedModel, ImportOptions
from smartmem_mlir.iree.archive import write_archive
from smartmem_mlir.iree.assumptions import refuse_other_device
from smartmem_mlir.iree.build import build, compile_to_flow
from smartmem_mlir.iree.compiler import DEFAULT_TIMEOUT_S, CompilerOptions
from smartmem_mlir.iree.device import default_device, resolve_device
from smartmem_mlir.iree.isolation import lower_isolated
from smartmem_mlir.iree.stored_parameters import stored_parameters
from smartmem_mlir.iree.toolchain import COMPILER_PACKAGE, RUNTIME_PACKAGE, package_version
from smartmem_mlir.report import directory
from smartmem_mlir.report.compare import TOLERANCE, Difference, compare
from smartmem_mlir.report.explanation import explain_import, without_locations
from smartmem_mlir.report.inputs import check_inputs, random_inputs
from smartmem_mlir.report.proofs import Proofs, check_directory, prove_certificates
from smartmem_mlir.report.reference import Reference, onnx_reference, torch_reference
from smartmem_mlir.report.schema import Report, SourceInfo, TensorInfo
from smartmem_mlir.targets import Pipeline, TargetDescription, load_pipeline, load_target

Array = npt.NDArray[np.generic]
Progress = Callable[[str], None]
Stage = Literal["import", "passes", "iree", "flow"]
STAGES: tuple[Stage, ...] = ("import", "passes", "iree", "flow")
"""What `emit` can stop at: the imported module, after our passes, as iree-compile reads it, IREE's flow IR."""


@dataclass(frozen=True)
class CompileOptions:
    """How to compile.

    Args:
        target: Name of a target, or path of its description.
        dims: Sizes of symbolic dimensions.
        dtype: Floating-point type to compute in; None keeps the model's.
        baseline: Plain IREE on the same import, the yardstick.
        pipeline: Name or path of the pass pipeline, the target's own if None; ignored for a baseline.
        layouts: How the order of dimensions of each tensor is chosen: "solver" for the cheapest of all by a model of
            the target, "paper" for the paper's rule; None leaves it to the pipeline.
        opt_level: Overrides the target's optimisation level.
        repair: Mend the Vulkan kernels that IREE makes wrongly; see `iree.shaders.repair` and `iree.vectors`.
            Without it the module is IREE's to the byte.
        check: Prove every rewrite of the passes before IREE compiles what they made.
        timeout_s: Time limit of each iree-compile run.
        trusted: Whether the model's file may run code while it is read, as `.pt2` archives can.
        progress: Told what happens next, in a few words.
    """

    target: str = "cpu"
    dims: Mapping[str, int] = field(default_factory=dict)
    dtype: Literal["f32", "f16"] | None = None
    baseline: bool = False
    pipeline: str | None = None
    layouts: Literal["solver", "paper"] | None = None
    opt_level: Literal["O0", "O1", "O2", "O3"] | None = None
    repair: bool = True
    check: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    trusted: bool = False
    progress: Progress = lambda stage: None

    def load_pipeline(self, target: TargetDescription) -> Pipeline:
        """The passes that these options ask for."""
        pipeline = load_pipeline("baseline" if self.baseline else self.pipeline or target.pipeline)
        if self.layouts is None:
            return pipeline
        return pipeline.with_option("smartmem-select-layouts", "layouts", self.layouts)


@dataclass(frozen=True)
class VerifyResult:
    """What `verify` found.

    Args:
        reference: What the module was compared with.
        device: Where it ran.
        tolerance: Largest accepted relative L2 distance.
        by_seed: The differences of each output, for each seed of the inputs.
    """

    reference: str
    device: str
    tolerance: float
    by_seed: Mapping[int, Sequence[Difference]]

    @property
    def matches(self) -> bool:
        """Whether every output agreed for every seed."""
        return all(difference.matches for differences in self.by_seed.values() for difference in differences)


class CompiledModel:
    """A directory that `compile` wrote.

    Args:
        path: The directory.

    Raises:
        InvalidModelError: It is not ours, incomplete, or damaged.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.report: Report = directory.read_directory(self.path)
        self._loaded: dict[str, Any] = {}

    def run(self, inputs: Mapping[str, Array] | Sequence[Array], device: str | None = None) -> dict[str, Array]:
        """One inference.

        Args:
            inputs: Arrays by input name, or in order.
            device: `cpu`, `local-task`, `local-sync`, `vulkan`, `vulkan://1` or `vulkan://GPU-<uuid>`; by default the
                first device of the kind that the module is for.

        Returns:
            The outputs by name.

        Raises:
            OptionError: An input does not fit.
            DeviceError: The device is missing or is not what the module was compiled for, or it failed.
        """
        arrays = check_inputs([info.spec for info in self.report.inputs], inputs)
        module = self._load(device or default_device(self.report.assumptions))
        return {info.name: values for info, values in zip(self.report.outputs, module(arrays), strict=True)}

    def verify(
        self,
        *,
        device: str | None = None,
        seeds: Sequence[int] = (0, 1, 2),
        model: Path | None = None,
        tolerance: float | None = None,
        trusted: bool = False,
        progress: Progress = lambda stage: None,
    ) -> VerifyResult:
        """Compare with the framework that the model came from, on random inputs.

        Args:
            device: As for :meth:`run`.
            seeds: Seeds of the inputs.
            model: The model file, if it has moved since.
            tolerance: Largest accepted relative L2 distance; by default by the floating-point type.
            trusted: Whether the model's file may run code while it is read, as `.pt2` archives can.
            progress: Told what happens next.

        Raises:
            InvalidModelError: The model file is missing or has changed.
            DeviceError: As for :meth:`run`.
        """
        device = device or default_device(self.report.assumptions)
        module = self._load(device)
        progress("loading the reference")
        reference = self._reference(self._source(model), trusted)
        inputs = [info.spec for info in self.report.inputs]
        outputs = [info.spec for info in self.report.outputs]
        if tolerance is None:
            tolerance = max(TOLERANCE.get(spec.dtype, 0.0) for spec in (*inputs, *outputs)) or TOLERANCE["f32"]
        by_seed = {}
        for seed in seeds:
            progress(f"comparing, seed {seed}")
            arrays = random_inputs(inputs, seed, reference.bounds)
            by_seed[seed] = compare(outputs, module(arrays), reference.run(arrays), tolerance)
        return VerifyResult(reference.name, device, tolerance, by_seed)

    def _load(self, device: str) -> Any:
        """The module on a device that fits, loaded once."""
        if device not in self._loaded:
            uri, properties = resolve_device(device)
            refuse_other_device(self.report.assumptions, properties)
            from smartmem_mlir.iree.runtime import LoadedModule

            self._loaded[device] = LoadedModule(
                self.path / directory.VMFB,
                self.path / directory.PARAMETERS if self.report.weights else None,
                uri,
                [info.spec for info in self.report.inputs],
                [info.spec for info in self.report.outputs],
            )
        return self._loaded[device]

    def _source(self, moved_to: Path | None) -> Path:
        source = self.report.source
        if moved_to is None and source.path is None:
            raise InvalidModelError("the model came from memory, not from a file", hint="name a file with --model")
        path = moved_to or Path(source.path or "")
        if not path.is_file():
            raise InvalidModelError("the model is not there any more", hint="name it with --model", file=path)
        if source.sha256 is not None and directory.sha256(path) != source.sha256:
            raise InvalidModelError("the model has changed since it was compiled", hint="compile it again", file=path)
        return path

    def _reference(self, path: Path, trusted: bool) -> Reference:
        if self.report.source.kind == "onnx":
            return onnx_reference(path)
        if self.report.source.kind == "torch":
            return torch_reference(path, trusted)
        return _unoptimized_reference(path, self.report)


def compile(
    model: Path | str | Any,
    output: Path | str | None = None,
    *,
    force: bool = False,
    options: CompileOptions | None = None,
    **overrides: Any,
) -> CompiledModel:
    """Compile a model to a directory with `model.vmfb`, `params.irpa`, `report.json` and `model.mlir`.

    Args:
        model: What `ingress.load` takes: a path to an `.onnx`, `.pt2` or `.mlir` file, or a torch program.
        output: The directory; by default `<model>-<target>` in the current one. It is written whole or not at all.
        force: Replace a directory that holds other files.
        options: How to compile.
        overrides: Fields of :class:`CompileOptions`, in place of `options`.

    Raises:
        SmartMemError: The model, an option, the device or the disk; see `errors`.
    """
    options = _options(options, overrides)
    target = load_target(options.target)
    pipeline = options.load_pipeline(target)
    folder = Path(output) if output is not None else default_output(model, target, options.baseline)
    directory.check_replaceable(folder, force)
    clock = _Clock(options.progress)
    imported = import_model(model, options, clock)
    with directory.atomic_directory(folder, force) as staging, tempfile.TemporaryDirectory() as workspace:
        compiler = _compiler_options(options, folder)
        clock("running passes")
        lowered = lower_isolated(imported.module, pipeline, target, compiler)
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
        )
        clock("writing the report")
        report = Report(
            tools=tool_versions(),
            source=_source_info(imported, options),
            target=target,
            opt_level=options.opt_level or target.opt_level,
            baseline=options.baseline,
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
            files={
                name: directory.describe_file(staging / name, hashed=name != directory.PARAMETERS)
                for name in (directory.VMFB, directory.PARAMETERS, directory.MODULE, directory.CERTIFICATES)
            },
            seconds=clock.stop(),
        )
        directory.write_report(staging, report)
    return CompiledModel(folder)


def emit(model: Path | str | Any, stage: Stage, options: CompileOptions | None = None, **overrides: Any) -> str:
    """The module's text at a stage, without compiling further.

    Args:
        model: As for :func:`compile`.
        stage: One of :data:`STAGES`.
        options: How to compile.
        overrides: Fields of :class:`CompileOptions`.
    """
    options = _options(options, overrides)
    target = load_target(options.target)
    pipeline = options.load_pipeline(target)
    imported = import_model(model, options, options.progress)
    if stage == "import":
        return without_locations(imported.module)
    compiler = _compiler_options(options, default_output(model, target, options.baseline))
    options.progress("running passes")
    text = lower_isolated(imported.module, pipeline, target, compiler, emit=stage != "passes").text
    if stage in ("passes", "iree"):
        return text
    options.progress("forming kernels")
    with tempfile.TemporaryDirectory() as workspace:
        source, flow = Path(workspace) / directory.MODULE, Path(workspace) / "flow.mlir"
        source.write_text(text)
        compile_to_flow(source, flow, target, options.opt_level, compiler)
        return flow.read_text()


def check(path: Path | str, progress: Progress = lambda stage: None) -> Proofs:
    """Prove again that every rewrite of a compilation was right, from the text of its certificates alone.

    Raises:
        InvalidModelError: It is not a directory that :func:`compile` wrote.
        UnprovedRewriteError: A rewrite was wrong or could not be proved.
    """
    proofs = check_directory(Path(path), progress)
    CompiledModel(path)
    return proofs


def load(path: Path | str) -> CompiledModel:
    """Open a directory that :func:`compile` wrote."""
    return CompiledModel(path)


def run(path: Path | str, inputs: Mapping[str, Array] | Sequence[Array], device: str | None = None) -> dict[str, Array]:
    """One inference of a directory that :func:`compile` wrote; see :meth:`CompiledModel.run`."""
    return CompiledModel(path).run(inputs, device)


def import_model(model: Path | str | Any, options: CompileOptions, progress: Progress) -> ImportedModel:
    """Import a model as the options say; see `ingress.load`."""
    from smartmem_mlir import ingress

    chosen = ImportOptions(dims=dict(options.dims), dtype=options.dtype, trusted=options.trusted)
    return ingress.load(model, chosen, progress)


def default_output(model: Path | str | Any, target: TargetDescription, baseline: bool) -> Path:
    """Where `compile` writes if it is not told: `<model>-<target>[-baseline]`."""
    stem = Path(model).stem if isinstance(model, (str, Path)) else type(model).__name__
    return Path(f"{stem}-{target.name}" + ("-baseline" if baseline else ""))


def tool_versions() -> dict[str, str]:
    """Versions of the packages that decide what comes out."""
    packages = ("smartmem-mlir", "xtc-mlir-python-bindings", "torch-mlir", COMPILER_PACKAGE, RUNTIME_PACKAGE)
    return {package: package_version(package) or "not installed" for package in packages}


class _Clock:
    """Passes stages on and keeps their times."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._seconds: dict[str, float] = {}
        self._stage, self._since = "", time.monotonic()

    def __call__(self, stage: str) -> None:
        self.stop()
        self._stage = stage
        self._progress(stage)

    def stop(self) -> dict[str, float]:
        """End the current stage; seconds of all stages so far."""
        now = time.monotonic()
        if self._stage:
            self._seconds[self._stage] = round(self._seconds.get(self._stage, 0.0) + now - self._since, 3)
        self._stage, self._since = "", now
        return self._seconds


def _options(options: CompileOptions | None, overrides: Mapping[str, Any]) -> CompileOptions:
    if options is not None and overrides:
        raise OptionError(f"both options and {', '.join(overrides)} were given", hint="give one or the other")
    try:
        return options or CompileOptions(**overrides)
    except TypeError as error:
        raise OptionError(str(error).replace("CompileOptions.__init__() ", "")) from error


def _compiler_options(options: CompileOptions, folder: Path) -> CompilerOptions:
    reproducer = folder.parent / f"{folder.name}.reproducer"
    return CompilerOptions(timeout_s=options.timeout_s, reproducer=reproducer)


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


def _unoptimized_reference(path: Path, report: Report) -> Reference:
    """For a module that has no framework behind it: IREE on the CPU at O0, without any of our passes."""
    options = CompileOptions(
        target="cpu", dims=report.source.dims, dtype=report.source.dtype, baseline=True, opt_level="O0"
    )
    workspace = tempfile.TemporaryDirectory()
    compiled = compile(path, Path(workspace.name) / "reference", options=options)

    def run_reference(inputs: Sequence[Array]) -> list[Array]:
        # Keeps the temporary directory alive as long as the module is mapped.
        assert workspace.name
        return list(compiled.run(list(inputs)).values())

    return Reference(f"IREE {metadata.version(COMPILER_PACKAGE)}, llvm-cpu, O0", run_reference, {})

"""How to compile, and the time that each stage takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from smartmem_mlir.errors import OptionError
from smartmem_mlir.iree.compiler import DEFAULT_TIMEOUT_S, CompilerOptions
from smartmem_mlir.iree.storage import Entry
from smartmem_mlir.targets import Pipeline, TargetDescription, load_pipeline

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
        storage: Where tensors of generated shaders live: "buffer", "image", or "auto" for what costs least on the
            target; None leaves it to the pipeline.
        opt_level: Overrides the target's optimisation level.
        entry: Who provides memory for results and intermediates: "plain" for the module itself, as IREE's tools expect,
            "in-place" for the caller, which spares a GPU waits between queue operations and a CPU copies of results.
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
    storage: Literal["buffer", "image", "auto"] | None = None
    opt_level: Literal["O0", "O1", "O2", "O3"] | None = None
    entry: Entry = "plain"
    repair: bool = True
    check: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    trusted: bool = False
    progress: Progress = lambda stage: None

    def load_pipeline(self, target: TargetDescription) -> Pipeline:
        """The passes that these options ask for."""
        pipeline = load_pipeline("baseline" if self.baseline else self.pipeline or target.pipeline)
        if self.layouts is not None:
            pipeline = pipeline.with_option("smartmem-select-layouts", "layouts", self.layouts)
        if self.storage is not None:
            pipeline = pipeline.with_option("smartmem-lower-groups-to-vulkan", "storage", self.storage)
        return pipeline


def resolve_options(options: CompileOptions | None, overrides: Mapping[str, Any]) -> CompileOptions:
    """The options, or those that the keywords make.

    Raises:
        OptionError: Both were given, or a keyword is no option.
    """
    if options is not None and overrides:
        raise OptionError(f"both options and {', '.join(overrides)} were given", hint="give one or the other")
    try:
        return options or CompileOptions(**overrides)
    except TypeError as error:
        raise OptionError(str(error).replace("CompileOptions.__init__() ", "")) from error


def compiler_options(options: CompileOptions, folder: Path) -> CompilerOptions:
    """How iree-compile runs for an output directory."""
    reproducer = folder.parent / f"{folder.name}.reproducer"
    return CompilerOptions(timeout_s=options.timeout_s, reproducer=reproducer)


class StageClock:
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

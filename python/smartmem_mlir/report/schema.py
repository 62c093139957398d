"""`report.json`: what was compiled, for what, from what, and what came out."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from smartmem_mlir.iree.assumptions import Assumptions
from smartmem_mlir.iree.fallback import Fallback
from smartmem_mlir.iree.flow.summary import FlowSummary
from smartmem_mlir.iree.shaders.repair import Repair
from smartmem_mlir.iree.storage import Entry
from smartmem_mlir.layouts.decision import LayoutDecision
from smartmem_mlir.layouts.memory import TensorMemory
from smartmem_mlir.report.explanation import Movement
from smartmem_mlir.signature import NUMPY_DTYPES, TensorSpec
from smartmem_mlir.targets import TargetDescription

FORMAT: Final = "smartmem-module"
FORMAT_VERSION: Final = 1


def _known_dtype(name: str) -> str:
    if name not in NUMPY_DTYPES:
        raise ValueError(f"unknown element type '{name}'")
    return name


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TensorInfo(_Part):
    """An input or output: its name in the model, static shape, MLIR element type."""

    name: str
    shape: tuple[int, ...]
    dtype: Annotated[str, AfterValidator(_known_dtype)]

    @staticmethod
    def of(spec: TensorSpec) -> TensorInfo:
        """From a specification."""
        return TensorInfo(name=spec.name, shape=spec.shape, dtype=spec.dtype)

    @property
    def spec(self) -> TensorSpec:
        """To a specification."""
        return TensorSpec(self.name, self.shape, self.dtype)


class SourceInfo(_Part):
    """Where the model came from.

    Args:
        name: Short name.
        kind: Which importer read it.
        path: Absolute path of the file, None for a model in memory.
        sha256: Digest of that file.
        dims: Sizes given to symbolic dimensions.
        dtype: Floating-point type it was converted to, None if it kept its own.
    """

    name: str
    kind: Literal["onnx", "torch", "mlir"]
    path: str | None
    sha256: str | None
    dims: dict[str, int]
    dtype: Literal["f32", "f16"] | None


class FileInfo(_Part):
    """A file of the directory; the digest is omitted for weights, which take too long to read at every start."""

    bytes: int
    sha256: str | None


class Report(_Part):
    """The whole report.

    Args:
        format: Marks the file, and with it the directory, as ours.
        version: Of this schema.
        tools: Versions of the packages that took part.
        source: The model.
        target: The target's description, as it was when the model was compiled.
        opt_level: IREE's optimisation level, the one that compiled.
        narrowed: Whether integers of 64 bits are computed in 32; see `iree.fallback`.
        subgroups: Whether kernels could use the target's subgroup operations.
        fallbacks: How IREE was asked to compile the module before that, and failed.
        baseline: Whether it is plain IREE.
        entry: Who provides memory for results and intermediates; see `iree.entry`.
        transient_bytes: What a caller must provide for intermediates; None where the module allocates them.
        pipeline: Name of the pass pipeline.
        passes: The passes, in MLIR's textual syntax.
        inputs: Arguments of `main`, in order.
        outputs: Results of `main`, in order.
        weights: Number of weights in `params.irpa`.
        weight_bytes: Their bytes.
        assumptions: What the module assumes of its device.
        flow: Kernels and bytes.
        repairs: Vulkan kernels whose superfluous threads were taken away or that got barriers; see
            `iree.shaders.repair`.
        misaligned: Vulkan kernels that IREE would vectorise wrongly; see `iree.vectors`.
        repaired: Whether Vulkan kernels were mended: `repairs` made, and the `misaligned` made scalar.
        movements: What became of each data-movement operator of the model.
        layouts: How the layouts of tensors were chosen, for each function.
        memories: Where each tensor of generated shaders is, and why; empty for a CPU and where buffers were asked for.
        files: The other files of the directory.
        seconds: Time of each stage.
    """

    format: Literal["smartmem-module"] = FORMAT
    version: Literal[1] = FORMAT_VERSION
    tools: dict[str, str]
    source: SourceInfo
    target: TargetDescription
    opt_level: str
    narrowed: bool = False
    subgroups: bool = True
    fallbacks: tuple[Fallback, ...] = ()
    baseline: bool
    entry: Entry = "plain"
    transient_bytes: int | None = None
    pipeline: str
    passes: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    weights: int
    weight_bytes: int
    assumptions: Assumptions
    flow: FlowSummary
    repairs: tuple[Repair, ...]
    misaligned: tuple[str, ...] = ()
    repaired: bool = True
    movements: tuple[Movement, ...] = ()
    layouts: tuple[LayoutDecision, ...] = ()
    memories: tuple[TensorMemory, ...] = ()
    files: dict[str, FileInfo]
    seconds: dict[str, float] = Field(default_factory=dict)


def digest(content: dict[str, Any]) -> str:
    """SHA-256 of a report's content without its own `digest`, which makes an edit by hand visible."""
    body = {key: value for key, value in content.items() if key != "digest"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def dump(report: Report) -> str:
    """The report as JSON, with its digest."""
    content = json.loads(report.model_dump_json())
    return json.dumps({**content, "digest": digest(content)}, indent=2) + "\n"

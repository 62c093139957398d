"""What a campaign records, as validated data that is written to and read from `results.json`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from smartmem_mlir.bench.timing import percentile

SCHEMA_VERSION: Literal[1] = 1

Status = Literal["ok", "wrong", "does not compile", "refused", "crashed", "timed out", "wrong backend", "not installed"]
"""`ok`: ran and verified. `wrong`: ran, but its output differs from the reference; its times count for nothing."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Accuracy(_Record):
    """Distance from the reference, the worst over all outputs.

    Args:
        relative_l2: Norm of the difference over the norm of the reference; None if there is a problem.
        max_abs: Largest absolute difference; None if there is a problem.
        problem: Why no distance can be given (number or shape of outputs, values that are not finite), if so.
    """

    relative_l2: float | None
    max_abs: float | None
    problem: str | None = None

    def within(self, tolerance: float) -> bool:
        """Whether the outputs are right."""
        return self.relative_l2 is not None and self.relative_l2 <= tolerance

    def worse_than(self, other: Accuracy) -> bool:
        """Whether it is further from the reference; having no distance is the worst."""
        if self.relative_l2 is None or other.relative_l2 is None:
            return self.relative_l2 is None and other.relative_l2 is not None
        return self.relative_l2 > other.relative_l2


class Counts(_Record):
    """What one inference launches, counted on IREE's flow IR: see :class:`smartmem_mlir.iree.flow.summary.FlowSummary`.

    Args:
        kernels: Kernel launches.
        movement_kernels: Those that only move data.
        movement_bytes: Reads plus writes of these.
        total_bytes: Reads plus writes of all kernels.
        copy_bytes: Reads plus writes of copies and fills outside kernels.
        modelled_cost: Cost of the chosen layouts in the compiler's own model; None where it has none.
    """

    kernels: int
    movement_kernels: int
    movement_bytes: int
    total_bytes: int
    copy_bytes: int
    modelled_cost: float | None = None


class Measurement(_Record):
    """One engine on one model with one number of threads.

    Args:
        engine: Short name, such as `onnxruntime`, `iree` or `smartmem`.
        version: The engine's version, as it says itself.
        device: `cpu` or `vulkan`.
        threads: CPU threads, enforced by affinity.
        status: How it ended.
        error: The engine's own words when it did not end well.
        backend: What the engine said that it ran on.
        setting: Which of its settings was used, where there is a choice.
        times_ms: Every timed inference, in order.
        first_ms: The first inference after loading.
        prepare_s: Conversion or compilation, seconds of wall time.
        load_s: Loading, seconds of wall time (engines that compile when they load do so here).
        peak_rss_bytes: Largest resident set of the engine's process.
        start_rss_bytes: Its resident set before the model was loaded: the interpreter and the engine's libraries.
        cores_used: CPU time over wall time while it was timed; well under `threads` means that it waited or was
            kept waiting by others.
        accuracy: Distance from the reference.
        counts: Kernels and bytes, where they can be counted.
    """

    engine: str
    version: str | None = None
    device: Literal["cpu", "vulkan"]
    threads: int
    status: Status
    error: str | None = None
    backend: str | None = None
    setting: str | None = None
    times_ms: tuple[float, ...] = ()
    first_ms: float | None = None
    prepare_s: float | None = None
    load_s: float | None = None
    peak_rss_bytes: int | None = None
    start_rss_bytes: int | None = None
    cores_used: float | None = None
    accuracy: Accuracy | None = None
    counts: Counts | None = None

    @property
    def median_ms(self) -> float | None:
        """Median latency of a verified engine; None for every other."""
        return percentile(self.times_ms, 50) if self.status == "ok" and self.times_ms else None


class ModelFacts(_Record):
    """What is known of a model without running it.

    Args:
        name: Stem of its file.
        sha256: Digest of its file (without external weights).
        nodes: Operators in the source graph.
        weight_bytes: Bytes of its weights.
        flops: Twice the multiply-adds of convolutions and matrix products; None if shapes could not be inferred.
        compulsory_bytes: Weights, inputs and outputs, each once: no engine can move less from cold memory.
    """

    name: str
    sha256: str
    nodes: int
    weight_bytes: int
    flops: int | None
    compulsory_bytes: int


class ModelResult(_Record):
    """All measurements of one model.

    Args:
        facts: The model.
        measurements: The engines side by side.
        sweep: Plain IREE at every setting tried, from which its best verified one was chosen.
    """

    facts: ModelFacts
    measurements: tuple[Measurement, ...] = ()
    sweep: tuple[Measurement, ...] = ()


class Peak(_Record):
    """What this machine can do, measured.

    Args:
        threads: CPU threads.
        gflops: f32 multiply and add in 10^9 a second.
        gbytes_per_s: Copying, reads plus writes, in 10^9 bytes a second.
    """

    threads: int
    gflops: float
    gbytes_per_s: float


class Host(_Record):
    """The machine.

    Args:
        cpu: Its name.
        cores: CPUs that the campaign could use.
        memory_bytes: Main memory.
        system: Kernel and distribution.
        load_before: Mean number of runnable processes in the minute before the campaign: well above 0 means noise.
        load_after: The same after it, the campaign's own threads included.
    """

    cpu: str
    cores: int
    memory_bytes: int | None
    system: str
    load_before: float
    load_after: float | None = None


class Settings(_Record):
    """How the campaign was run.

    Args:
        target: Target that was compiled for.
        threads: Numbers of CPU threads.
        runs: Timed inferences of each engine.
        rounds: Turns over which they were spread.
        time_limit_s: Seconds an engine had for each step.
        seconds: Seconds of inference after which an engine had no further turn.
        tolerance: Largest relative L2 error that counts as right.
        seed: Seed of the inputs.
    """

    target: str
    threads: tuple[int, ...]
    runs: int
    rounds: int
    time_limit_s: float
    tolerance: float
    seed: int
    seconds: float | None = None


class Campaign(_Record):
    """A whole run of the harness; `results.json`.

    Args:
        version: Of this schema.
        started: UTC, ISO 8601.
        commit: Commit of the checkout that measured, with `+` if it had changes; None outside a checkout.
        host: The machine.
        settings: How it was run.
        peaks: The machine's measured limits by number of threads.
        models: The results.
        skipped: Models that could not be read or referenced, by name, with the error.
    """

    version: Literal[1] = SCHEMA_VERSION
    started: str
    commit: str | None
    host: Host
    settings: Settings
    peaks: tuple[Peak, ...] = ()
    models: tuple[ModelResult, ...] = ()
    skipped: dict[str, str] = Field(default_factory=dict)

    def peak(self, threads: int) -> Peak | None:
        """The limits with so many threads."""
        return next((peak for peak in self.peaks if peak.threads == threads), None)

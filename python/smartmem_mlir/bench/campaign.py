"""A campaign: every model, every number of threads, every engine, one result file."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

from smartmem_mlir.bench.engines import Device, Engine, iree_engine
from smartmem_mlir.bench.host import available_memory, checkout_commit, cpus_for, this_host, usable_cpus
from smartmem_mlir.bench.iree_variants import (
    BASELINE,
    Setting,
    Variant,
    all_settings,
    compile_variant,
    counts_of,
    setting_of,
    share_weights,
)
from smartmem_mlir.bench.measure import Entrant, Plan, convert, race
from smartmem_mlir.bench.model import BenchModel, copy_model, open_model
from smartmem_mlir.bench.peaks import measure_peak
from smartmem_mlir.bench.peer_process import PeerError
from smartmem_mlir.bench.prepared import package_sources, prepared, stamp_of
from smartmem_mlir.bench.reference import Workload, make_workload
from smartmem_mlir.bench.report import merge
from smartmem_mlir.bench.results import Campaign, Measurement, ModelResult, Settings
from smartmem_mlir.errors import OptionError, SmartMemError
from smartmem_mlir.report.directory import explain_os_errors
from smartmem_mlir.targets import TargetDescription

_SWEEP_RUNS = 6
_SWEEP_ROUNDS = 2
# Engines hold weights in a form of their own beside the file's bytes.
_RESIDENT_FACTOR = 3


@dataclass(frozen=True)
class CampaignOptions:
    """How to run a campaign.

    Args:
        targets: What to compile for; ours is the first, plain IREE may use any.
        threads: Numbers of CPU threads, each a separate race.
        peers: The rivals.
        variants: What to compile; see :func:`.iree_variants.find_variant`.
        iree_settings: Settings of plain IREE to try, by name; None for all.
        runs: Timed inferences of each engine.
        rounds: Turns over which they are spread.
        time_limit: Seconds an engine has for each step.
        convert_limit: Seconds a rival's converter has; `time_limit` if that is less.
        seconds: Seconds of inference that an engine has in one race; it has one turn at least.
        model_limit: Seconds that one model has: what has not had its turn by then has timed out.
        tolerance: Largest relative L2 error that counts as right.
        seed: Seed of the inputs.
        dims: Sizes of symbolic dimensions.
        keep: Keep compiled modules and converted models, and use those that were kept.
        prepare_only: Convert and compile, and measure nothing: that needs no quiet machine.
    """

    targets: tuple[TargetDescription, ...]
    threads: tuple[int, ...]
    peers: tuple[Engine, ...]
    variants: tuple[Variant, ...]
    iree_settings: tuple[str, ...] | None = None
    runs: int = 50
    rounds: int = 5
    time_limit: float = 600.0
    convert_limit: float = math.inf
    seconds: float = math.inf
    model_limit: float = math.inf
    tolerance: float = 1e-3
    seed: int = 0
    dims: Mapping[str, int] = field(default_factory=dict)
    keep: bool = False
    prepare_only: bool = False

    @property
    def device(self) -> Device:
        """Where the targets' modules run."""
        return "cpu" if self.targets[0].cpu is not None else "vulkan"

    def settings(self) -> list[Setting]:
        """The settings of plain IREE to try.

        Raises:
            OptionError: A name is unknown.
        """
        known = {setting.name: setting for setting in all_settings(self.targets)}
        names = list(known) if self.iree_settings is None else list(self.iree_settings)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise OptionError(f"unknown setting of plain IREE '{unknown[0]}'", hint=f"settings: {', '.join(known)}")
        return [known[name] for name in names]


def run_campaign(
    models: Sequence[Path],
    options: CampaignOptions,
    output: Path,
    say: Callable[[str], None],
    record: Callable[[Campaign], None],
    done: Campaign | None = None,
) -> Campaign:
    """Run a campaign.

    Args:
        models: ONNX files.
        options: How to run it.
        output: Folder for intermediate files, under `work/`.
        say: Told what happens next.
        record: Given the campaign so far after each model, so that a campaign that is cut short is not lost.
        done: An earlier part of the campaign, whose models are not measured again.

    Raises:
        SmartMemError: An option is wrong, or the machine cannot be measured. A model that cannot be read, and what an
            engine does wrong, is recorded instead.
    """
    output = output.resolve()  # engines run in folders of their own
    plans = {threads: _plan(options, threads) for threads in options.threads}
    options.settings()  # a wrong name should not cost the time that it takes to get there
    _check_names(models)
    host = this_host()
    peaks = []
    for threads, plan in plans.items() if not options.prepare_only else ():
        say(f"measuring this machine with {threads} threads")
        peaks.append(measure_peak(plan.cpus))
    campaign = Campaign(
        started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        commit=checkout_commit(),
        host=host,
        settings=Settings(
            target=", ".join(target.name for target in options.targets),
            threads=options.threads,
            runs=options.runs,
            rounds=options.rounds,
            time_limit_s=options.time_limit,
            seconds=options.seconds if math.isfinite(options.seconds) else None,
            tolerance=options.tolerance,
            seed=options.seed,
        ),
        peaks=tuple(peaks),
    )
    if done is not None:
        campaign = merge([done, campaign])
    known = {model.facts.name for model in campaign.models}
    for source in models:
        if source.stem in known:
            say(f"{source.stem}: measured before")
            continue
        workdir = output / "work" / source.stem
        if not options.keep:
            shutil.rmtree(workdir, ignore_errors=True)
        changes: dict[str, object] = {}
        try:
            with explain_os_errors(workdir):
                run = _ModelRun(source, options, workdir, partial(_say_of, say, source.stem))
                if options.prepare_only:
                    run.prepare()
                    continue
                changes["models"] = (*campaign.models, run.run(list(plans.values())))
                changes["skipped"] = {name: why for name, why in campaign.skipped.items() if name != source.stem}
        except SmartMemError as error:
            text = str(error).replace(str(source), source.name)
            say(f"{source.stem}: {text}")
            changes["skipped"] = {**campaign.skipped, source.stem: text}
        finally:
            if not options.keep:
                shutil.rmtree(workdir, ignore_errors=True)
        changes["host"] = host.model_copy(update={"load_after": this_host().load_before})
        campaign = campaign.model_copy(update=changes)
        record(campaign)
    return campaign


def _check_names(models: Sequence[Path]) -> None:
    names = [source.stem for source in models]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"two models are called '{twice}'", hint="results are kept by the file's name: rename one")


def _say_of(say: Callable[[str], None], model: str, text: str) -> None:
    say(f"{model}: {text}")


def _plan(options: CampaignOptions, threads: int) -> Plan:
    return Plan(
        device=options.device,
        cpus=cpus_for(threads),
        runs=options.runs,
        rounds=min(options.rounds, options.runs),
        time_limit=options.time_limit,
        tolerance=options.tolerance,
        seconds=options.seconds,
    )


class _ModelRun:
    """Everything for one model; conversions and compilations are shared by all numbers of threads."""

    def __init__(self, source: Path, options: CampaignOptions, workdir: Path, say: Callable[[str], None]) -> None:
        self._options = options
        self._workdir = workdir
        self._say = say
        self._deadline = time.monotonic() + options.model_limit
        say("reading the model")
        self._model: BenchModel = open_model(source, workdir / "model", options.dims)
        self._failures: list[Measurement] = []

    def prepare(self) -> tuple[list[Entrant], list[Entrant], list[Entrant]]:
        """Convert and compile: plain IREE at its settings, ours, the rivals."""
        peers = self._convert_peers()
        baselines: list[Entrant] = []
        ours: list[Entrant] = []
        for variant in self._options.variants:
            if variant.engine == BASELINE:
                baselines = self._compile_baselines(variant)
            elif (entrant := self._compile_ours(variant)) is not None:
                ours.append(entrant)
        return baselines, ours, peers

    def run(self, plans: Sequence[Plan]) -> ModelResult:
        """Race every engine once for each plan."""
        baselines, ours, peers = self.prepare()
        self._say("computing the reference")
        self._workload: Workload = make_workload(
            self._model, self._workdir / "inputs", self._options.seed, threads=len(usable_cpus())
        )
        measurements: list[Measurement] = []
        sweep: list[Measurement] = []
        for index, plan in enumerate(plans):
            now = time.monotonic()
            deadline = now + (self._deadline - now) / (len(plans) - index)
            resident = self._fits_in_memory(len(peers) + len(baselines) + len(ours))
            # One engine that hangs must not take the time of all.
            step = min(plan.time_limit, max(1.0, (deadline - now) / 4))
            plan = replace(plan, resident=resident, deadline=deadline, time_limit=step)
            failed = [failure.model_copy(update={"threads": plan.threads}) for failure in self._failures]
            tried = self._race(baselines, replace(plan, runs=_SWEEP_RUNS, rounds=_SWEEP_ROUNDS), "sweep")
            best = _best(baselines, tried)
            tried += [failure for failure in failed if failure.engine == BASELINE]
            sweep += tried
            entrants = [*([best] if best is not None else []), *ours, *peers]
            measurements += self._race(entrants, plan, "race")
            if best is None and tried:
                measurements.append(_nearest_failure(tried))
            measurements += [failure for failure in failed if failure.engine != BASELINE]
        found = ModelResult(facts=self._model.facts, measurements=tuple(measurements), sweep=tuple(sweep))
        return _without_paths(found, self._workdir)

    def _race(self, entrants: Sequence[Entrant], plan: Plan, name: str) -> list[Measurement]:
        folder = self._workdir / f"{name}-{plan.threads}"
        say = lambda text: self._say(f"{plan.threads} threads, {name}, {text}")  # noqa: E731
        return race(entrants, self._workload, self._model.signature, plan, folder, say)

    def _convert_peers(self) -> list[Entrant]:
        entrants = []
        for engine in self._options.peers:
            if not engine.converts:
                entrants.append(Entrant(engine, self._model.path))
                continue
            self._say(f"converting for {engine.title}")
            folder = self._workdir / "converted" / engine.name
            try:
                artifact, seconds = prepared(
                    folder,
                    stamp_of(self._model.facts.sha256, self._model.signature, *engine.sources),
                    partial(self._convert, engine, folder),
                )
                entrants.append(Entrant(engine, artifact, seconds))
            except PeerError as failure:
                self._fail(engine.name, failure)
        return entrants

    def _convert(self, engine: Engine, folder: Path) -> tuple[Path, float]:
        copy = folder / "source"
        model = copy_model(self._model, copy)
        limit = self._time_left(min(self._options.time_limit, self._options.convert_limit))
        try:
            artifact, seconds = convert(engine, model, self._model.signature, usable_cpus(), folder, limit)
        except PeerError:
            shutil.rmtree(copy)
            raise
        if copy not in artifact.parents:
            shutil.rmtree(copy)
        return artifact, seconds

    def _time_left(self, limit: float) -> float:
        return max(1.0, min(limit, self._deadline - time.monotonic()))

    def _compile_baselines(self, variant: Variant) -> list[Entrant]:
        """Plain IREE at every setting that compiles, or at the highest level that does if none of those named does."""
        entrants: list[Entrant] = []
        named = self._options.settings()
        levels = [setting for setting in all_settings(self._options.targets) if "+" not in setting.name]
        others = [setting for setting in reversed(levels) if setting not in named]
        for setting in [*named, *others]:
            if entrants and setting not in named:
                break
            entrant = self._compile(variant, setting)
            if entrant is None:
                continue
            if entrants:
                share_weights(entrant.artifact, entrants[0].artifact)
            entrants.append(entrant)
        return entrants

    def _compile_ours(self, variant: Variant) -> Entrant | None:
        target = self._options.targets[0]
        return self._compile(variant, Setting(target.opt_level, target))

    def _compile(self, variant: Variant, setting: Setting) -> Entrant | None:
        self._say(f"compiling {variant.title} ({setting.name})")
        folder = self._workdir / "compiled" / f"{variant.engine}-{setting.name}".replace(" ", "-")
        limit = self._time_left(self._options.time_limit)
        compile_ = partial(
            compile_variant, self._model.source, self._model.dims, setting, variant.options, folder, limit
        )
        facts = (self._model.facts.sha256, sorted(self._model.dims.items()), setting.target.model_dump(mode="json"))
        try:
            directory, seconds = prepared(folder, stamp_of(*facts, variant.options, *package_sources()), compile_)
        except PeerError as failure:
            self._fail(variant.engine, failure, setting.name)
            return None
        engine = iree_engine(variant.engine, variant.title)
        return Entrant(engine, directory, seconds, setting_of(directory, setting), counts_of(directory))

    def _fail(self, engine: str, failure: PeerError, setting: str | None = None) -> None:
        self._say(f"{engine}{f' ({setting})' if setting else ''}: {failure.kind}")
        self._failures.append(
            Measurement(
                engine=engine,
                device=self._options.device,
                threads=0,
                status=failure.kind,
                error=failure.message,
                setting=setting,
            )
        )

    def _fits_in_memory(self, engines: int) -> bool:
        available = available_memory()
        needed = _RESIDENT_FACTOR * self._model.facts.weight_bytes * engines
        return available is None or needed < available // 2


def _without_paths(result: ModelResult, workdir: Path) -> ModelResult:
    """Errors as they may be published: without the folders of this machine."""
    folders = {str(workdir): "WORK", str(Path(__file__).resolve().parents[3]): "CHECKOUT", str(Path.home()): "HOME"}

    def clean(measurement: Measurement) -> Measurement:
        error = measurement.error
        for folder, name in folders.items():
            error = error.replace(folder, name) if error is not None else None
        return measurement.model_copy(update={"error": error})

    changes = {"measurements": tuple(map(clean, result.measurements)), "sweep": tuple(map(clean, result.sweep))}
    return result.model_copy(update=changes)


def _best(entrants: Sequence[Entrant], tried: Sequence[Measurement]) -> Entrant | None:
    """The fastest entrant among those that verified."""
    ranked = [(m.median_ms, i) for i, m in enumerate(tried) if m.median_ms is not None]
    return entrants[min(ranked)[1]] if ranked else None


def _nearest_failure(tried: Sequence[Measurement]) -> Measurement:
    """What stands for plain IREE if no setting verifies: rather one that ran wrong than one that did not run."""
    return min(tried, key=lambda measurement: measurement.status != "wrong")

"""A whole campaign on a small model, with real engines, and what the command line refuses."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import typer
import yaml
from bench_onnx import mlp
from typer.testing import CliRunner

from smartmem_mlir.bench import report
from smartmem_mlir.bench.campaign import CampaignOptions, run_campaign
from smartmem_mlir.bench.command import bench_models
from smartmem_mlir.bench.engines import Engine, choose_peers, load_peers, peers_folder
from smartmem_mlir.bench.iree_variants import Setting, all_settings, compile_variant, find_variant
from smartmem_mlir.bench.measure import Entrant
from smartmem_mlir.bench.peaks import measure_peak
from smartmem_mlir.bench.peer_process import PeerError
from smartmem_mlir.bench.prepared import stamp_of
from smartmem_mlir.bench.results import Campaign
from smartmem_mlir.errors import OptionError
from smartmem_mlir.targets import load_target

PEERS = Path(__file__).resolve().parents[3] / "benchmarks" / "peers"
Fake = Callable[..., Entrant]


@pytest.fixture(autouse=True)
def short_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring the machine is tested by itself."""
    from smartmem_mlir.bench.results import Peak

    monkeypatch.setattr(
        "smartmem_mlir.bench.campaign.measure_peak", lambda cpus: Peak(threads=len(cpus), gflops=1, gbytes_per_s=1)
    )


def _options(**changes: object) -> CampaignOptions:
    onnxruntime = replace(load_peers(PEERS)["onnxruntime"], python=Path(sys.executable))
    options = CampaignOptions(
        targets=(load_target("cpu"),),
        threads=(1,),
        peers=(onnxruntime,),
        variants=(find_variant("baseline"), find_variant("smartmem")),
        iree_settings=("O0", "O3"),
        runs=4,
        rounds=2,
        time_limit=120.0,
    )
    return replace(options, **changes)  # type: ignore[arg-type]


def test_a_campaign_end_to_end(tmp_path: Path) -> None:
    recorded: list[Campaign] = []
    source = mlp(tmp_path / "mlp.onnx")
    before = source.read_bytes()
    campaign = run_campaign([source], _options(), tmp_path / "out", lambda text: None, recorded.append)
    (model,) = campaign.models
    assert {m.engine: m.status for m in model.measurements} == {"iree": "ok", "smartmem": "ok", "onnxruntime": "ok"}
    for m in model.measurements:
        assert len(m.times_ms) == 4
        assert m.accuracy is not None
        assert m.accuracy.within(1e-5)
        assert m.threads == 1
    assert {m.setting for m in model.sweep} == {"O0", "O3"}
    ours = next(m for m in model.measurements if m.engine == "smartmem")
    assert ours.counts is not None
    assert ours.counts.kernels >= 1
    assert ours.backend == "local-task"
    assert recorded[-1] == campaign
    assert source.read_bytes() == before
    assert not (tmp_path / "out" / "work" / "mlp").exists()
    report.write(campaign, tmp_path / "out")
    assert "mlp" in (tmp_path / "out" / report.MARKDOWN).read_text()


def test_rivals_that_fail_do_not_stop_a_campaign(tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Converters see an ONNX file; this one expects JSON and raises, another rival has no environment."""
    absent = replace(fake("absent").engine, python=tmp_path / "no" / "python")
    options = _options(variants=(), peers=(fake("confused").engine, absent, *_options().peers))
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"nonsense")
    monkeypatch.chdir(tmp_path)
    source = mlp(tmp_path / "mlp.onnx")
    campaign = run_campaign([broken, source], options, Path("relative"), lambda text: None, lambda c: None)
    assert campaign.skipped["broken"].startswith("broken.onnx: not an ONNX model")
    statuses = {m.engine: m.status for m in campaign.models[0].measurements}
    assert statuses == {"confused": "refused", "absent": "not installed", "onnxruntime": "ok"}
    assert str(tmp_path) not in campaign.models[0].model_dump_json(), "paths of this machine are nobody's business"


def test_plain_iree_that_does_not_compile_is_recorded(tmp_path: Path) -> None:
    target = load_target("cpu").model_copy(update={"iree_flags": ("--iree-no-such-flag",)})
    options = _options(targets=(target,), peers=(), iree_settings=("O3",))
    source = mlp(tmp_path / "mlp.onnx")
    campaign = run_campaign([source], options, tmp_path / "out", lambda text: None, lambda c: None)
    (model,) = campaign.models
    assert {m.engine: m.status for m in model.measurements} == {
        "iree": "does not compile",
        "smartmem": "does not compile",
    }
    error = model.measurements[0].error or ""
    assert "iree-compile failed" in error
    assert str(tmp_path) not in error, "the reproducer is gone with the working folder"


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    sources = [mlp(tmp_path / "first.onnx"), mlp(tmp_path / "second.onnx")]
    options = _options(variants=(find_variant("smartmem"),), runs=2, rounds=1)
    part = run_campaign(sources[:1], options, tmp_path / "out", lambda text: None, lambda c: None)
    recorded: list[Campaign] = []
    whole = run_campaign(sources, options, tmp_path / "out", lambda text: None, recorded.append, part)
    assert [model.facts.name for model in whole.models] == ["first", "second"]
    assert whole.models[0] == part.models[0], "measured before, not again"
    assert recorded == [whole]
    other = replace(options, runs=4)
    with pytest.raises(OptionError, match="not run alike"):
        run_campaign(sources, other, tmp_path / "out", lambda text: None, lambda c: None, part)


def test_what_was_prepared_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = mlp(tmp_path / "mlp.onnx")
    said: list[str] = []
    options = _options(iree_settings=("O3",), runs=2, rounds=1, keep=True)
    prepare = replace(options, prepare_only=True)
    prepared = run_campaign([source], prepare, tmp_path / "out", said.append, lambda c: None)
    assert (prepared.models, prepared.peaks) == ((), ())
    assert not any("race" in text or "reference" in text for text in said)

    def nothing(*_: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr("smartmem_mlir.bench.campaign.compile_variant", nothing)
    campaign = run_campaign([source], options, tmp_path / "out", said.append, lambda c: None)
    assert {m.engine: m.status for m in campaign.models[0].measurements} == {
        "iree": "ok",
        "smartmem": "ok",
        "onnxruntime": "ok",
    }
    assert all(m.prepare_s for m in campaign.models[0].measurements if m.engine != "onnxruntime")
    mlp(source, batch=5)
    with pytest.raises(AssertionError, match="compiled again"):
        run_campaign([source], options, tmp_path / "out", said.append, lambda c: None)


def test_conversions_are_made_again_when_anything_that_made_them_changes(tmp_path: Path) -> None:
    for name in ("engine.py", "shared/operators.py", "requirements/engine.txt", "requirements/other.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    adapter = tmp_path / "engine.py"
    engine = Engine("engine", "Engine", Path(sys.executable), adapter, {"cpu": ".*"}, converts=True, setup="")
    before = stamp_of(*engine.sources)
    (tmp_path / "requirements" / "other.txt").write_text("another version")
    assert stamp_of(*engine.sources) == before
    for name in ("engine.py", "shared/operators.py", "requirements/engine.txt"):
        (tmp_path / name).write_text("changed")
        assert stamp_of(*engine.sources) != before
        before = stamp_of(*engine.sources)


def test_plain_iree_falls_back_to_the_highest_level_that_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def fails_above_o1(model: Path, dims: object, setting: Setting, *rest: object) -> tuple[Path, float]:
        tried.append(setting.name)
        if setting.target.opt_level not in ("O0", "O1"):
            raise PeerError("does not compile", "too much stack")
        return compile_variant(model, {}, setting, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("smartmem_mlir.bench.campaign.compile_variant", fails_above_o1)
    options = _options(variants=(find_variant("baseline"),), peers=(), iree_settings=("O3", "O3+im2col"))
    source = mlp(tmp_path / "mlp.onnx")
    (model,) = run_campaign([source], options, tmp_path / "out", lambda text: None, lambda c: None).models
    assert tried == ["O3", "O3+im2col", "O2", "O1"]
    assert [(m.setting, m.status) for m in model.measurements] == [("O1", "ok")]


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    sources = [mlp(tmp_path / "mlp.onnx"), mlp(tmp_path / "other" / "mlp.onnx")]
    with pytest.raises(OptionError, match="two models are called 'mlp'"):
        run_campaign(sources, _options(), tmp_path / "out", lambda text: None, lambda c: None)


def test_a_full_disk_costs_one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("smartmem_mlir.bench.campaign.make_workload", no_space)
    campaign = run_campaign(
        [mlp(tmp_path / "mlp.onnx")], _options(), tmp_path / "out", lambda text: None, lambda c: None
    )
    assert "no space left" in campaign.skipped["mlp"]


def test_settings_of_plain_iree() -> None:
    cpu = [setting.name for setting in all_settings([load_target("cpu")])]
    assert cpu == ["O0", "O1", "O2", "O3", "O3+data-tiling", "O3+im2col", "O3+im2col+data-tiling"]
    vulkan = all_settings([load_target("vulkan"), load_target("nvidia")])
    assert [s.name for s in vulkan][::4] == ["vulkan O0", "nvidia O0"]
    assert {s.target.opt_level for s in vulkan} == {"O0", "O1", "O2", "O3"}
    with pytest.raises(OptionError, match="O3\\+im2col"):
        _options(iree_settings=("O9",)).settings()


def test_the_list_of_rivals_is_complete() -> None:
    peers = load_peers(PEERS)
    for name, peer in peers.items():
        assert peer.adapter.is_file()
        assert (PEERS / "requirements" / f"{name}.txt").is_file()
    adapters = {path.stem for path in PEERS.glob("*.py")}
    assert adapters == set(peers)


def test_a_backend_must_match_in_full() -> None:
    peers = load_peers(PEERS)
    assert peers["mnn"].accepts("cpu", "CPU SIMD extension+CPU")
    assert not peers["mnn"].accepts("cpu", "CPU+OpenCL")
    assert peers["ncnn"].accepts("vulkan", "Vulkan NVIDIA H200")
    assert not peers["ncnn"].accepts("vulkan", "CPU")
    assert not peers["openvino"].accepts("cpu", "CPU bf16")
    assert not peers["litert"].accepts("cpu", "TensorFlow Lite's own kernels")


def test_rivals_are_chosen_by_name() -> None:
    peers = load_peers(PEERS)
    assert [p.name for p in choose_peers(["mnn", "tract"], peers, "cpu")] == ["mnn", "tract"]
    with pytest.raises(OptionError, match="did you mean openvino"):
        choose_peers(["openvin"], peers, "cpu")
    with pytest.raises(OptionError, match="no adapter for vulkan"):
        choose_peers(["mnn"], peers, "vulkan")
    with pytest.raises(OptionError, match="--peers-dir"):
        peers_folder(Path("/nonexistent"))


def test_a_bad_list_of_rivals_is_refused(tmp_path: Path) -> None:
    (tmp_path / "peers.yaml").write_text(yaml.safe_dump({"x": {"title": "X", "backend": {"tpu": ".*"}}}))
    with pytest.raises(OptionError, match=r"peers\.yaml"):
        load_peers(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--peers", "onnxruntim"], "did you mean onnxruntime"),
        (["--threads", "0"], "expected a small positive number"),
        (["--threads", "1,1"], "given twice"),
        (["--threads", "1000"], "this machine lends"),
        (["--variants", "nosuch"], "pipeline"),
        (["--target", "toaster"], "unknown target 'toaster'"),
        (["--target", "cpu,vulkan"], "different devices"),
        (["--iree-settings", "O4"], "settings: O0"),
        (["--dim", "n"], "NAME=VALUE"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(tmp_path: Path, arguments: list[str], message: str) -> None:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(bench_models)
    command = [str(mlp(tmp_path / "mlp.onnx")), "-o", str(tmp_path / "out"), "--peers", "none", *arguments]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, OptionError)
    assert message in str(result.exception)
    assert not (tmp_path / "out" / "work").exists()


def test_the_machine_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    from smartmem_mlir.bench.host import cpus_for

    peak = measure_peak(cpus_for(1))
    # Between a slow phone and a fast server core.
    assert 1 < peak.gflops < 1000
    assert 0.5 < peak.gbytes_per_s < 500
    assert json.loads(peak.model_dump_json())["threads"] == 1

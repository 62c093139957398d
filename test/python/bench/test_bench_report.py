"""Tables and plots of a campaign, and that a file of results reads back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from smartmem_mlir.bench import report
from smartmem_mlir.bench.plots import draw
from smartmem_mlir.bench.results import (
    Accuracy,
    Campaign,
    Counts,
    Host,
    Measurement,
    ModelFacts,
    ModelResult,
    Peak,
    Settings,
)
from smartmem_mlir.bench.tables import markdown
from smartmem_mlir.errors import InvalidModelError, OptionError

RIGHT = Accuracy(relative_l2=1e-6, max_abs=1e-5)
COUNTS = Counts(kernels=10, movement_kernels=4, movement_bytes=4_000_000, total_bytes=20_000_000, copy_bytes=0)


def _measured(engine: str, *times: float, **fields: object) -> Measurement:
    values = {"device": "cpu", "threads": 1, "status": "ok", "accuracy": RIGHT, "times_ms": times, **fields}
    return Measurement.model_validate({"engine": engine, **values})


def _model(name: str, *measurements: Measurement, sweep: tuple[Measurement, ...] = ()) -> ModelResult:
    facts = ModelFacts(
        name=name, sha256="0" * 64, nodes=9, weight_bytes=8_000_000, flops=2_000_000_000, compulsory_bytes=10_000_000
    )
    return ModelResult(facts=facts, measurements=measurements, sweep=sweep)


@pytest.fixture
def campaign() -> Campaign:
    wrong = Accuracy(relative_l2=0.64, max_abs=3.0)
    return Campaign(
        started="2026-01-01T00:00:00+00:00",
        commit="abc",
        host=Host(cpu="Test CPU", cores=2, memory_bytes=1, system="Linux", load_before=0.1),
        settings=Settings(target="cpu", threads=(1,), runs=3, rounds=1, time_limit_s=1.0, tolerance=1e-3, seed=0),
        peaks=(Peak(threads=1, gflops=100.0, gbytes_per_s=10.0),),
        models=(
            _model(
                "first",
                _measured("iree", 10.0, 10.0, 40.0, setting="O3", counts=COUNTS),
                _measured("smartmem", 5.0, 5.0, 5.0, setting="O3", counts=COUNTS),
                _measured("fast", 1.0, 1.0, 1.0, status="wrong", accuracy=wrong),
                sweep=(_measured("iree", 10.0, setting="O3"), _measured("iree", 20.0, setting="O0")),
            ),
            _model(
                "second",
                _measured("iree", 10.0, 10.0, 10.0, setting="O0", counts=COUNTS),
                _measured("smartmem", 20.0, 20.0, 20.0, setting="O3", counts=COUNTS),
                _measured("fast", status="crashed", accuracy=None, error="died of | SIGSEGV\nreally"),
            ),
        ),
        skipped={"third": "third.onnx: not an ONNX model"},
    )


def _row(text: str, heading: str, first: str) -> list[str]:
    section = text.split(heading, 1)[1]
    line = next(line for line in section.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_a_wrong_engine_has_no_time_and_no_speed_up(campaign: Campaign) -> None:
    text = markdown(campaign)
    assert _row(text, "## Median latency", "first") == ["first", "10", "**5**", "wrong"]
    assert _row(text, "## Median latency", "second") == ["second", "**10**", "20", "crashed"]
    assert "fast" not in text.split("### Speed-up", 1)[1].split("##", 1)[0]


def test_speed_ups_are_over_plain_iree_and_their_mean_is_geometric(campaign: Campaign) -> None:
    text = markdown(campaign)
    assert _row(text, "### Speed-up", "first") == ["first", "2.00"]
    assert _row(text, "### Speed-up", "second") == ["second", "0.50"]
    assert _row(text, "### Speed-up", "geometric mean of those that run")[1] == "1.00"


def test_rates_are_set_against_the_measured_limits(campaign: Campaign) -> None:
    row = _row(markdown(campaign), "### first", "smartmem")
    # 2 GFLOP in 5 ms: 400 GFLOPS, four times the limit; 20 MB in 5 ms: 4 GB/s.
    assert row[9:13] == ["400.0", "400%", "4.00", "40%"]


def test_failures_are_listed_with_their_errors_on_one_line(campaign: Campaign) -> None:
    failures = markdown(campaign).split("## What did not run", 1)[1]
    assert "- third: third.onnx: not an ONNX model" in failures
    assert "- first, fast: wrong: relative L2 6.40e-01" in failures
    assert "- second, fast: crashed: died of | SIGSEGV really" in failures


def test_noise_is_confessed(campaign: Campaign) -> None:
    assert "not quiet" not in markdown(campaign)
    noisy = campaign.model_copy(update={"host": campaign.host.model_copy(update={"load_before": 3.0})})
    assert "not quiet" in markdown(noisy)


def test_kernels_of_plain_iree_are_shown_at_our_setting(campaign: Campaign) -> None:
    best, ours = campaign.models[1].measurements[:2]
    fewer = COUNTS.model_copy(update={"kernels": 7})
    sweep = (best, _measured("iree", 30.0, setting="O3", counts=fewer))
    model = _model("second", best, ours, sweep=sweep)
    text = markdown(campaign.model_copy(update={"models": (model,)}))
    assert _row(text, "## Kernels", "second")[1:4] == ["iree (O3)", "7", "4"]


def test_results_read_back(campaign: Campaign, tmp_path: Path) -> None:
    report.write_json(campaign, tmp_path)
    assert report.read_json(tmp_path / report.JSON) == campaign
    (tmp_path / report.JSON).write_text("{}")
    with pytest.raises(InvalidModelError, match="not a result"):
        report.read_json(tmp_path / report.JSON)


def test_every_plot_is_a_picture(campaign: Campaign, tmp_path: Path) -> None:
    files = draw(campaign, tmp_path)
    assert [file.name for file in files] == ["speed-up-1-threads.png", "roofline-1-threads.png", "kernels.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


def test_a_campaign_without_results_is_still_written(campaign: Campaign, tmp_path: Path) -> None:
    report.write(campaign.model_copy(update={"models": ()}), tmp_path)
    assert "not an ONNX model" in (tmp_path / report.MARKDOWN).read_text()
    assert not list(tmp_path.glob(".*"))


def test_campaigns_in_parts_are_joined(campaign: Campaign) -> None:
    first, second = campaign.models
    again = second.model_copy(update={"measurements": ()})
    one = campaign.model_copy(update={"models": (first, second)})
    faster = (Peak(threads=1, gflops=90.0, gbytes_per_s=20.0),)
    two = campaign.model_copy(update={"models": (again,), "peaks": faster, "commit": "def", "skipped": {"second": "x"}})
    joined = report.merge([one, two])
    assert joined.models == (first, again)
    assert joined.peaks == (Peak(threads=1, gflops=100.0, gbytes_per_s=20.0),)
    assert joined.commit == "abc, def"
    assert joined.skipped == {"third": "third.onnx: not an ONNX model"}
    other = campaign.model_copy(update={"settings": campaign.settings.model_copy(update={"runs": 9})})
    with pytest.raises(OptionError, match="not run alike"):
        report.merge([campaign, other])


def test_the_papers_tables_find_our_counts(campaign: Campaign, tmp_path: Path) -> None:
    swin = campaign.models[0].facts.model_copy(update={"name": "swin"})
    renamed = campaign.models[0].model_copy(update={"facts": swin})
    report.write_json(campaign.model_copy(update={"models": (renamed,)}), tmp_path)
    script = Path(__file__).resolve().parents[3] / "benchmarks" / "paper_tables.py"
    command = [sys.executable, str(script), str(tmp_path / report.JSON)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert _row(text, "## Operators", "swin") == ["swin", "765", "596", "", "", "374", "207", "158", "10", "10"]
    assert _row(text, "## Layout", "swin") == ["swin", "242", "4", "4.00", "4", "4.00", "100.0%"]
    assert _row(text, "## Memory", "swin")[3] == "100.0%"
    assert _row(text, "## Layout", "fst")[:2] == ["fst", "32"]

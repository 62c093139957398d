"""The regression guard fails when, and only when, a count rises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bench_onnx import mlp

import smartmem_mlir as sm
from smartmem_mlir.bench.counts import (
    Entry,
    Table,
    above_baseline,
    full_models,
    improvements,
    markdown,
    read_table,
    regressions,
)
from smartmem_mlir.bench.iree_variants import all_settings, setting_of
from smartmem_mlir.bench.results import Counts
from smartmem_mlir.errors import InvalidModelError
from smartmem_mlir.targets import load_target

CHECK = Path(__file__).resolve().parents[3] / "benchmarks" / "check.py"
COUNTS = Counts(kernels=72, movement_kernels=1, movement_bytes=301_056, total_bytes=27_622_696, copy_bytes=478_896)


def _table(ours: Counts | None = COUNTS, plain: Counts | None = COUNTS, compiler: str = "3.13.0") -> Table:
    def entry(counts: Counts | None) -> Entry:
        return Entry(counts=counts) if counts is not None else Entry(error="failed to legalize")

    return Table(compiler=compiler, target="cpu", models={"demo": {"baseline": entry(plain), "smartmem": entry(ours)}})


def test_nothing_changed() -> None:
    assert regressions(_table(), _table()) == []
    assert improvements(_table(), _table()) == []


@pytest.mark.parametrize("field", ["kernels", "movement_kernels", "movement_bytes", "total_bytes", "copy_bytes"])
def test_one_more_of_anything_is_a_regression(field: str) -> None:
    more = COUNTS.model_copy(update={field: getattr(COUNTS, field) + 1})
    (found,) = regressions(_table(), _table(ours=more))
    assert found.startswith(f"demo, smartmem: {field.replace('_', ' ')} ")
    less = COUNTS.model_copy(update={field: getattr(COUNTS, field) - 1})
    assert regressions(_table(), _table(ours=less)) == []
    assert len(improvements(_table(), _table(ours=less))) == 1


def test_large_counts_are_printed_exactly() -> None:
    more = COUNTS.model_copy(update={"total_bytes": COUNTS.total_bytes + 1})
    assert regressions(_table(), _table(ours=more)) == ["demo, smartmem: total bytes 27622696 -> 27622697"]


def test_the_table_for_people_adds_copies_to_what_moves() -> None:
    less = COUNTS.model_copy(update={"kernels": 64, "copy_bytes": 0})
    text = markdown(_table(ours=less))
    assert "| demo | 72 -> 64 | 1 -> 1 | 0.78 -> 0.30 | 28.10 -> 27.62 |" in text.splitlines()
    assert "| demo | does not compile | | | |" in markdown(_table(ours=None)).splitlines()


def test_a_modelled_cost_is_compared_once_both_have_it() -> None:
    costly, cheap = (COUNTS.model_copy(update={"modelled_cost": cost}) for cost in (2.5, 1.5))
    assert regressions(_table(), _table(ours=costly)) == []
    assert len(regressions(_table(ours=cheap), _table(ours=costly))) == 1


def test_the_yardstick_must_not_move_at_all() -> None:
    less = COUNTS.model_copy(update={"kernels": 71})
    assert len(regressions(_table(), _table(plain=less))) == 1


def test_a_model_that_stops_compiling_is_a_regression() -> None:
    assert "does not compile any more" in regressions(_table(), _table(ours=None))[0]
    assert regressions(_table(ours=None), _table(ours=None)) == []
    assert improvements(_table(ours=None), _table()) == ["demo, smartmem: compiles now"]


def test_another_compiler_or_a_new_model_needs_a_new_table() -> None:
    assert "3.12.0" in regressions(_table(compiler="3.12.0"), _table())[0]
    empty = Table(compiler="3.13.0", target="cpu", models={})
    assert all("not in the table" in line for line in regressions(empty, _table()))


def test_costing_more_than_plain_iree_is_pointed_out() -> None:
    assert above_baseline(_table()) == []
    traded = COUNTS.model_copy(
        update={"kernels": 73, "total_bytes": COUNTS.total_bytes + 10, "copy_bytes": COUNTS.copy_bytes - 10}
    )
    assert above_baseline(_table(ours=traded)) == ["demo: kernels 72 -> 73"]
    assert above_baseline(_table(plain=None)) == []


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "counts.json"
    path.write_text('{"compiler": 1}')
    with pytest.raises(InvalidModelError, match=r"counts\.json"):
        read_table(path)


def _check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(CHECK), *arguments], capture_output=True, text=True, check=False)


def test_the_script_catches_a_rise(tmp_path: Path) -> None:
    table = tmp_path / "counts.json"
    assert _check("resnet50", "--table", str(table)).returncode == 2
    assert _check("resnet50", "--table", str(table), "--update").returncode == 0
    same = _check("resnet50", "--table", str(table))
    assert (same.returncode, same.stdout.splitlines()[-1]) == (0, "1 models, 0 regressions")
    committed = read_table(table)
    entry = committed.models["resnet50"]["smartmem"]
    assert entry.counts is not None
    fewer = entry.counts.model_copy(update={"kernels": entry.counts.kernels - 1})
    changed = {"resnet50": {**committed.models["resnet50"], "smartmem": Entry(counts=fewer)}}
    table.write_text(committed.model_copy(update={"models": changed}).model_dump_json())
    worse = _check("resnet50", "--table", str(table))
    assert worse.returncode == 1
    assert f"kernels {fewer.kernels} -> {entry.counts.kernels}" in worse.stderr


def test_the_script_lists_known_models() -> None:
    result = _check("nosuch")
    assert result.returncode == 2
    assert "demo" in result.stderr


def test_tables_of_counts_are_set_beside_the_papers(tmp_path: Path) -> None:
    less = COUNTS.model_copy(update={"kernels": 64, "movement_bytes": 0, "copy_bytes": 0})
    entries = {"baseline": Entry(counts=COUNTS), "smartmem": Entry(counts=less)}
    table = _table().model_copy(update={"models": {"swin": entries}, "full": True})
    assert markdown(table).startswith("# Models at full size, cpu")
    (tmp_path / "counts-full.json").write_text(table.model_dump_json())
    script = CHECK.with_name("paper_tables.py")
    command = [sys.executable, str(script), str(tmp_path / "counts-full.json")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split(" | ")[1:] for line in text.splitlines() if line.startswith("| swin ")]
    assert rows[0][-2:] == ["72", "64 |"]
    assert rows[1] == ["242", "1", "0.78", "1", "0.00", "0.0% |"]
    assert rows[2] == ["28.10", "27.62", "98.3% |"]


def test_models_at_full_size_are_found_with_their_weights(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for name in ("vit.onnx", "pythia.onnx", "pythia.onnx.data", "other.onnx"):
        (tmp_path / "models" / name).write_text(name)
    found = full_models(tmp_path / "models")
    assert list(found) == ["vit", "pythia"], "in the zoo's order"
    found["pythia"](tmp_path / "pythia.onnx")
    assert (tmp_path / "pythia.onnx").read_text() == "pythia.onnx"
    assert (tmp_path / "pythia.onnx.data").read_text() == "pythia.onnx.data"


def test_a_setting_says_the_level_that_compiled(tmp_path: Path) -> None:
    """Where `compile` had to go lower, a table must not claim the level that was asked for."""
    asked, other = (setting for setting in all_settings([load_target("cpu")]) if setting.name in ("O1", "O3"))
    compiled = sm.compile(mlp(tmp_path / "mlp.onnx"), tmp_path / "out", target="cpu", opt_level="O1")
    assert setting_of(compiled.path, asked) == "O1"
    assert setting_of(compiled.path, other) == "O3, compiled at O1"

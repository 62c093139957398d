"""The script that compiles and verifies the zoo: what it records, and what it does when a model fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "full_size.py"


def full_size(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def rows(file: Path) -> dict[str, dict[str, object]]:
    return {row["model"]: row for row in json.loads(file.read_text())["rows"]}


def test_a_model_is_recorded_and_others_stay(tmp_path: Path) -> None:
    output = tmp_path / "rows.json"
    failed = full_size("--small", "resnet50", "vit", "--output", output, "--time-limit", "0.1", "--levels", "O3,O0")
    assert failed.returncode == 1
    for row in rows(output).values():
        assert row["level"] is None
        assert row["failed"] == {level: "compile: took more than 0.1 s" for level in ("O3", "O0")}
    done = full_size("--small", "resnet50", "--output", output)
    assert done.returncode == 0
    found = rows(output)
    assert list(found) == ["vit", "resnet50"], "in the zoo's order, a line each"
    assert found["vit"]["level"] is None
    row = found["resnet50"]
    assert (row["level"], row["failed"]) == ("O3", {})
    assert 0 < float(str(row["relative_l2"])) < 1e-4
    assert float(str(row["compile_cpu_s"])) > 0
    assert {"kernels", "movement_kernels", "bytes", "movement_bytes", "compile_peak_mb", "verify_peak_mb"} <= row.keys()
    assert len(output.read_text().splitlines()) == 9


def test_wrong_command_lines(tmp_path: Path) -> None:
    assert "unknown model 'resnet5'" in full_size("--small", "resnet5").stderr
    assert full_size("resnet50").returncode == 2
    missing = full_size("--models", tmp_path, "resnet50", "--output", tmp_path / "rows.json")
    assert (missing.returncode, missing.stdout) == (1, "resnet50: no file\n")
    assert not (tmp_path / "rows.json").exists()

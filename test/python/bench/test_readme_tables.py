"""The README's tables say what the recorded results say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def check(root: Path) -> int:
    command = [sys.executable, root / "benchmarks" / "readme_tables.py", "--check"]
    return subprocess.run(command, check=False, timeout=120).returncode


def test_the_readme_is_up_to_date() -> None:
    assert check(ROOT) == 0, "run benchmarks/readme_tables.py"


def test_an_edited_number_is_found(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    for name in ("readme_tables.py", "paper.yaml", "results/cpu.json", "results/h200_shaders.json"):
        (tmp_path / "benchmarks" / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "benchmarks" / name, tmp_path / "benchmarks" / name)
    text = (ROOT / "README.md").read_text()
    (tmp_path / "README.md").write_text(text.replace("| Swin-T | 158 |", "| Swin-T | 157 |"))
    assert check(tmp_path) == 1

"""Options from files, the log, examples, completion, and staging folders of killed compilations."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import smartmem_mlir as sm
from conftest import Smartmem
from smartmem_mlir.cli.app import app
from smartmem_mlir.cli.config_file import load_config
from smartmem_mlir.cli.examples import EXAMPLES
from smartmem_mlir.errors import OptionError
from smartmem_mlir.report.directory import atomic_directory

KNOWN = {"model", "output", "target", "dim", "baseline", "opt_level"}


def test_toml_and_yaml_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        'model = "net.onnx"\ntarget = "mine.yaml"\nopt-level = "O2"\nbaseline = true\n[dim]\nbatch = 1\n"x:2" = 7\n'
    )
    (tmp_path / "a.yaml").write_text(
        "model: net.onnx\ntarget: mine.yaml\nopt_level: O2\nbaseline: true\noutput:\ndim: {batch: 1, 'x:2': 7}\n"
    )
    expected = {
        "model": str(tmp_path / "net.onnx"),
        "target": str(tmp_path / "mine.yaml"),
        "opt_level": "O2",
        "baseline": True,
        "dim": ["batch=1", "x:2=7"],
    }
    assert load_config(tmp_path / "a.toml", KNOWN) == load_config(tmp_path / "a.yaml", KNOWN) == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "optlevel = 1", "no such option 'optlevel'; did you mean 'opt_level'"),
        ("a.toml", "model = ", "not TOML"),
        ("a.yaml", "{", "not YAML"),
        ("a.yaml", "- model", "expected a table"),
        ("a.yaml", "dim: 3", "expected a table of sizes"),
        ("a.yaml", "target: [cpu]", "expected one value, not a list"),
        ("a.json", "{}", "'.json' is not the end"),
        ("a.yaml", "config: b.yaml", "no such option 'config'"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(OptionError, match=message):
        load_config(tmp_path / name, KNOWN)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    for name in ("missing.toml", "binary.toml"):
        with pytest.raises(OptionError, match="cannot read"):
            load_config(tmp_path / name, KNOWN)


def test_the_command_line_comes_first(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    config = tmp_path / "options.toml"
    config.write_text(f'model = "{model}"\noutput = "out"\nbaseline = true\nopt-level = "O2"\n')
    done = smartmem("compile", "--config", config, "--opt-level", "O1", "-vv")
    assert done.code == 0, done.err
    report = sm.load(tmp_path / "out").report
    assert (report.baseline, report.opt_level) == (True, "O1")
    assert "smartmem_mlir.iree.compiler: running " in done.err
    assert "lowering to linalg: " in done.err


def test_values_in_a_file_are_checked_like_options(smartmem: Smartmem, model: Path, tmp_path: Path) -> None:
    config = tmp_path / "options.yaml"
    config.write_text("opt-level: O7\n")
    done = smartmem("compile", model, "--config", config)
    assert done.code == 2
    assert "O7" in done.err
    config.write_text("dim: {batch: -1}\n")
    assert "--dim batch=-1: expected a positive integer" in smartmem("compile", model, "--config", config).err


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_examples_of_the_help_parse(line: str) -> None:
    words = shlex.split(line)
    group = typer.main.get_command(app)
    command = group.commands[words[1]]  # type: ignore[attr-defined]
    if "--config" not in words:
        command.make_context(words[1], words[2:])


def test_completion(tmp_path: Path) -> None:
    environment = {**os.environ, "_SMARTMEM_COMPLETE": "complete_bash", "COMP_WORDS": "smartmem dra", "COMP_CWORD": "1"}
    script = Path(sys.executable).with_name("smartmem")
    done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["draw-layout"]


def test_what_a_killed_compilation_left_goes_with_the_next(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    abandoned = tmp_path / f".out.staging.{ended.pid}.0123abcd"
    running = tmp_path / f".out.staging.{os.getpid()}.0123abcd"
    foreign = tmp_path / ".out.staging.x"
    for folder in (abandoned, running, foreign):
        folder.mkdir()
        (folder / "model.vmfb").touch()
    with atomic_directory(tmp_path / "out", force=False) as folder:
        assert folder.name.startswith(f".out.staging.{os.getpid()}.")
        (folder / "file").touch()
    assert {path.name for path in tmp_path.iterdir()} == {"out", running.name, foreign.name}


def test_nothing_is_left_however_early_the_end_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that arrives just after the folder was made, before anything else runs."""
    made = Path.mkdir

    def interrupted(self: Path, *arguments: object, **options: object) -> None:
        made(self, *arguments, **options)  # type: ignore[arg-type]
        if ".staging." in self.name:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_directory(tmp_path / "out", force=False):
        pass
    assert not list(tmp_path.iterdir())

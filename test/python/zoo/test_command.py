"""`smartmem zoo` without torch: listing, near matches, missing packages, atomic files."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smartmem_mlir.errors import OptionError
from smartmem_mlir.zoo import CARDS, find
from smartmem_mlir.zoo.command import app
from smartmem_mlir.zoo.environment import MissingPackageError, require, without_torchvision
from smartmem_mlir.zoo.export import check_opset
from smartmem_mlir.zoo.full_check import results
from smartmem_mlir.zoo.sizes import load
from smartmem_mlir.zoo.sizes_table import TOLERANCE, table

ROOT = Path(__file__).parents[3]
runner = CliRunner()


def test_list_names_every_model_with_figures() -> None:
    result = runner.invoke(app, ["list"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(CARDS)
    assert "28.3" in next(line for line in lines if line.startswith("swin"))


def test_list_as_json() -> None:
    cards = json.loads(runner.invoke(app, ["list", "--json"]).stdout)
    assert {card["name"] for card in cards} == set(CARDS)
    assert all(card["size"]["params"] > 0 for card in cards)


@pytest.mark.parametrize(
    ("typed", "meant"), [("swim", "swin"), ("resnet", "resnet50"), ("unet", "sd-unet"), ("Pythia", "pythia")]
)
def test_unknown_name_lists_near_matches(typed: str, meant: str) -> None:
    with pytest.raises(OptionError, match=f"no model named '{typed}'.*did you mean .*{meant}"):
        find(typed)


def test_unknown_name_without_near_match() -> None:
    with pytest.raises(OptionError, match="smartmem zoo list"):
        find("qqqqqqqq")


def test_missing_package_names_the_extra() -> None:
    with pytest.raises(MissingPackageError, match=r"swin: needs the package no_such_package; pip install '.*\[zoo\]'"):
        require(("json", "no_such_package"), "swin")


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="says what happens without torch")
def test_build_without_torch_leaves_no_file(tmp_path: Path) -> None:
    result = runner.invoke(app, ["build", "swin", "-o", str(tmp_path / "swin.onnx")])
    assert isinstance(result.exception, MissingPackageError)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("exporter", "opset"), [("dynamo", 17), ("dynamo", 99), ("torchscript", 21)])
def test_opset_out_of_range(exporter: str, opset: int) -> None:
    with pytest.raises(OptionError, match=f"{exporter} exporter does not write opset {opset}; choose"):
        check_opset(exporter, opset)


def test_torchvision_placeholder_comes_and_goes() -> None:
    if importlib.util.find_spec("torchvision") is not None:
        pytest.fail("the test environment must not hold torchvision: see the zoo's installation notes")
    with without_torchvision():
        from torchvision.ops.misc import FrozenBatchNorm2d  # type: ignore[import-not-found]
        from torchvision.transforms import InterpolationMode

        assert isinstance(FrozenBatchNorm2d, type)
        assert isinstance(InterpolationMode.NEAREST, type)
    assert "torchvision" not in sys.modules
    assert importlib.util.find_spec("torchvision") is None


def test_importing_the_command_is_light() -> None:
    code = "import sys, smartmem_mlir.zoo.command; print([m for m in ('torch', 'onnx') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_sizes_agree_with_the_paper_or_are_explained() -> None:
    for name, card in CARDS.items():
        if card.paper is None:
            continue
        size = load()[name, False]
        ratios = [size.macs / 1e9 / card.paper.gmacs]
        if card.paper.params is not None:
            ratios.append(size.params / 1e6 / card.paper.params)
        assert all(abs(ratio - 1) <= TOLERANCE for ratio in ratios) or card.note, name


def test_small_variants_are_small() -> None:
    for name in CARDS:
        assert 0.9e6 < load()[name, True].params < 3e6, name


def test_generated_table_is_current() -> None:
    assert (ROOT / "benchmarks" / "zoo.md").read_text() == table(load(), results())

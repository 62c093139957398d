"""The examples on the theory page and in the package's docstring are executed."""

from __future__ import annotations

import doctest
from pathlib import Path

import smartmem_mlir.index_maps as index_maps

PAGE = Path(__file__).parents[3] / "docs" / "index-maps.md"


def test_examples_of_the_theory_page() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted >= 12
    assert result.failed == 0


def test_examples_of_the_package() -> None:
    result = doctest.testmod(index_maps)
    assert result.attempted >= 3
    assert result.failed == 0


def test_every_rule_of_the_table_is_tested() -> None:
    from test_index_rules import CASES

    from smartmem_mlir.index_maps import simplify

    rows = [line.split("|")[1].strip() for line in (simplify.__doc__ or "").splitlines() if line.startswith("| ")]
    assert set(rows) - {"rule"} == {name for name, *_ in CASES}

"""The generated pages are those that the sources give."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_generator():
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "tools" / "generate_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_pass_has_an_example():
    from smartmem_mlir.transforms.registry import get_passes

    find_example = load_generator().find_example
    assert [argument for argument, cls in get_passes().items() if not find_example(cls).is_file()] == []


@pytest.mark.parametrize("page", ["docs/dialect.md", "docs/passes.md"])
def test_page_is_not_stale(page):
    generator = load_generator()
    assert (ROOT / page).read_text() == generator.PAGES[page](), "run `make docs`"

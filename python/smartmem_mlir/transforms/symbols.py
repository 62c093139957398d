"""Symbols of a module: which there are, and new ones."""

from __future__ import annotations

from mlir import ir


def symbols(module: ir.Block) -> set[str]:
    """The symbols of a module."""
    return {
        ir.StringAttr(op.operation.attributes["sym_name"]).value
        for op in module.operations
        if "sym_name" in op.operation.attributes
    }


def unique(stem: str, taken: set[str]) -> str:
    """A symbol that is free, which it then no longer is."""
    symbol, suffix = stem, 0
    while symbol in taken:
        suffix += 1
        symbol = f"{stem}_{suffix}"
    taken.add(symbol)
    return symbol

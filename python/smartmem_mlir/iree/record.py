"""What the worker process records while passes run, and how it gets back: files beside the module."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from pydantic import TypeAdapter

from smartmem_mlir.layouts.decision import LayoutDecision
from smartmem_mlir.layouts.memory import TensorMemory
from smartmem_mlir.transforms.evidence import Fate, recording

_P = ParamSpec("_P")
_T = TypeVar("_T")

CERTIFICATES, FATES, LAYOUTS, MEMORIES = "certificates.json", "fates.json", "layouts.json", "memories.json"


@dataclass(frozen=True)
class Record:
    """What was recorded.

    Args:
        certificates: The text of `certificates.json`; see `index_maps.evidence`.
        fates: What became of views, in order.
        layouts: How layouts were chosen, for each function.
        memories: Where each tensor of generated shaders is.
    """

    certificates: str
    fates: tuple[Fate, ...]
    layouts: tuple[LayoutDecision, ...] = ()
    memories: tuple[TensorMemory, ...] = ()


def recorded(task: Callable[_P, _T]) -> Callable[_P, _T]:
    """A task of the worker that writes `output`, and beside it what passes told meanwhile."""

    @wraps(task)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        from smartmem_mlir.index_maps.evidence import dump_rewrites

        with recording() as evidence:
            value = task(*args, **kwargs)
        folder = Path(str(kwargs["output"])).parent
        (folder / CERTIFICATES).write_text(dump_rewrites(evidence.rewrites))
        (folder / FATES).write_text(json.dumps([asdict(fate) for fate in dict.fromkeys(evidence.fates)]))
        (folder / LAYOUTS).write_text(json.dumps([asdict(decision) for decision in evidence.layouts]))
        (folder / MEMORIES).write_text(json.dumps([asdict(memory) for memory in evidence.memories]))
        return value

    return run


def read_record(folder: Path) -> Record:
    """What a task that wrote to `folder` recorded."""
    fates = json.loads((folder / FATES).read_text())
    return Record(
        (folder / CERTIFICATES).read_text(),
        tuple(Fate(**{**fate, "nodes": tuple(fate["nodes"]), "operators": tuple(fate["operators"])}) for fate in fates),
        TypeAdapter(tuple[LayoutDecision, ...]).validate_json((folder / LAYOUTS).read_text()),
        TypeAdapter(tuple[TensorMemory, ...]).validate_json((folder / MEMORIES).read_text()),
    )

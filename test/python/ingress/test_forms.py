"""Every form compiles for the CPU with IREE and computes what ONNX Runtime does."""

from __future__ import annotations

import forms
import kept_forms
import node_cases
import pytest
from onnx_cases import random_feeds, run_onnxruntime

CHUNK = 22
"""Forms per test: enough to share a compilation, few enough to spread over workers."""

NAMES = (*forms.REWRITTEN, *kept_forms.KEPT)


def as_case(name: str) -> node_cases.Case:
    """A form as a node case whose expected outputs are ONNX Runtime's."""
    model = {**forms.REWRITTEN, **kept_forms.KEPT}[name]()
    feeds = random_feeds(model)
    return node_cases.Case(name, model, tuple(feeds.values()), tuple(run_onnxruntime(model, feeds)), 1e-3, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(NAMES), CHUNK))
def test_forms_through_iree(start: int) -> None:
    cases = [as_case(name) for name in NAMES[start : start + CHUNK]]
    verdicts = node_cases.run_cases(cases, log=False, cached=False)
    assert {name: v for name, v in verdicts.items() if v.status != "pass"} == {}
    assert len(verdicts) == len(cases)

"""Which tests share a worker of pytest-xdist, and which begin first."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

FOLDER = Path(__file__).parent
FIRST = (
    "zoo/test_compiled.py",
    "bench/test_bench_campaign.py",
    "cli/test_cli_bad_input.py",
    "kernels/test_attention.py",
    "kernels/test_vulkan_contractions.py",
    "kernels/test_cpu_contractions.py",
    "kernels/test_cpu_winograd.py",
    "kernels/test_cooperative.py",
    "docs/test_tutorial.py",
    "docs/test_readme.py",
    "ingress/test_forms.py",
    "transforms/test_modelled_cost.py",
)
"""Files that take minutes: what begins last must be short, or one worker goes on alone."""
APART = {
    "zoo/test_compiled.py",
    "docs/test_readme.py",
    "ingress/test_forms.py",
    "transforms/test_modelled_cost.py",
}
"""Files whose tests share nothing that takes time."""
DIVIDED = {
    "kernels/test_attention.py",
    "kernels/test_vulkan_contractions.py",
    "kernels/test_cpu_contractions.py",
    "kernels/test_linear_attention.py",
}
"""Files whose fixture is compiled for several devices, with which the names of their parameters begin."""
TOGETHER = ("cli/",)
"""Folders that share what their conftest compiles."""


def unit_of(test: str) -> str:
    """What goes to a worker as a whole: as a rule a file's tests, since they share what fixtures compile."""
    file = test.partition("::")[0].rpartition("test/python/")[2]
    if file in APART:
        return test
    if file in DIVIDED and (device := re.search(r"\[(\w+)", test)):
        return f"{file} {device[1]}"
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


class Scheduling(LoadScopeScheduling):
    """Units in the order of the tests, which need no `--dist`."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    config.option.loadscopereorder = False
    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        file = item.path.relative_to(FOLDER).as_posix()
        return FIRST.index(file) if file in FIRST else len(FIRST)

    items.sort(key=place)

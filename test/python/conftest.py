"""Which tests share a worker of pytest-xdist (`--dist loadgroup`), and which begin first."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
FIRST = (
    "zoo/test_compiled.py",
    "kernels/test_cooperative.py",
    "kernels/test_attention.py",
    "docs/test_tutorial.py",
    "docs/test_readme.py",
    "kernels/test_vulkan_contractions.py",
    "kernels/test_cpu_contractions.py",
    "ingress/test_forms.py",
)
"""Files that take minutes: what begins last must be short, or one worker goes on alone."""
APART = {"zoo/test_compiled.py", "ingress/test_forms.py", "docs/test_readme.py"}
"""Files whose tests share nothing that takes time."""
TOGETHER = ("cli/",)
"""Folders that share what their conftest compiles."""
FIXTURES = ("compiled", "run")
"""Fixtures that are compiled for each of their parameters."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests go to one worker, divided by what their fixtures are compiled for."""
    for item in items:
        if (file := file_of(item)) not in APART:
            parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
            unit = next((folder for folder in TOGETHER if file.startswith(folder)), file)
            group = [unit, *(str(parameters[name]) for name in FIXTURES if name in parameters)]
            item.add_marker(pytest.mark.xdist_group("-".join(group)))
    items.sort(key=lambda item: FIRST.index(file) if (file := file_of(item)) in FIRST else len(FIRST))


def file_of(item: pytest.Item) -> str:
    return item.path.relative_to(FOLDER).as_posix()

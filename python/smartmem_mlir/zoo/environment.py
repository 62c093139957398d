"""The optional packages of the zoo, and the one that it does without."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from smartmem_mlir.errors import SmartMemError

EXTRA = "smartmem-mlir[zoo]"


class MissingPackageError(SmartMemError):
    """A model needs a package of the `[zoo]` extra that is not installed."""


def require(packages: Sequence[str], model: str) -> None:
    """Import `packages`.

    Raises:
        MissingPackageError: One of them is absent, or fails to import; the message names the extra.
    """
    for package in packages:
        try:
            # Only around timm: transformers and diffusers ask once whether torchvision exists and remember it.
            with without_torchvision() if package == "timm" else nullcontext():
                importlib.import_module(package)
        except ImportError as error:
            absent = importlib.util.find_spec(package) is None
            what = f"needs the package {package}" if absent else f"{package} fails to import: {error}"
            raise MissingPackageError(what, node=model, hint=f"pip install '{EXTRA}'") from error


@contextmanager
def without_torchvision() -> Iterator[None]:
    """Let `import timm` succeed where torchvision is absent or does not fit the installed torch.

    timm imports torchvision for data loading and a few layers that the zoo does not use. torchvision's wheels are
    built against one torch (with CUDA), so a CPU build of torch has none. Inside the context an unusable torchvision
    is replaced by placeholders; afterwards they are gone, so that other packages still see it as absent.
    """
    if "torchvision" in sys.modules or _usable("torchvision"):
        yield
        return
    finder = _PlaceholderFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]


def _usable(package: str) -> bool:
    """Whether `package` imports; a binary that does not fit raises RuntimeError or OSError, not ImportError."""
    try:
        importlib.import_module(package)
    except (ImportError, RuntimeError, OSError):
        return False
    return True


class _EmptyClass(type):
    """The type of classes whose every attribute is again such a class (an enum's members, say)."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _EmptyClass(name, (), {})
        setattr(cls, name, value)
        return value


class _Placeholder(ModuleType):
    """A module whose every attribute is a class that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _EmptyClass(name, (), {})
        setattr(self, name, value)
        return value


class _PlaceholderFinder(MetaPathFinder, Loader):
    """Serves `torchvision` and everything below it as placeholders."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname.split(".")[0] != "torchvision":
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Placeholder(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""

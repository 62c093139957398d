"""What to try next when iree-compile does not compile a module as it was asked to.

IREE's optimising levels fail on some modules that lower ones compile, and its emulation of 64-bit integers, for devices
that have none, fails on some operations at every level.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from smartmem_mlir.targets import TargetDescription

_LEVELS = ("O0", "O1", "O2", "O3")
_NARROW_FLAG = "--iree-input-demote-i64-to-i32"
# What enters or leaves a module keeps its type: functions, and variables, which are weights.
_BOUNDARY = re.compile(r"^.*\b(?:util\.global|func\.func|util\.func)\b.*i64", re.MULTILINE)
_LITERAL_LINE = re.compile(r"^.*\bconstant\b.*i64.*$", re.MULTILINE)
_INTEGER = re.compile(r"(?<![\w.%#@])-?\d+\b(?!x)")


class Fallback(BaseModel):
    """A way in which a module was not compiled.

    Args:
        opt_level: IREE's optimisation level.
        narrowed: Whether integers of 64 bits were computed in 32.
        error: What iree-compile said.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    opt_level: str
    narrowed: bool
    error: str


@dataclass(frozen=True)
class Attempt:
    """A way to compile a module.

    Args:
        opt_level: IREE's optimisation level.
        narrowed: Whether integers of 64 bits are computed in 32.
    """

    opt_level: str
    narrowed: bool = False

    def __str__(self) -> str:
        return f"{self.opt_level}, 64-bit integers as 32" if self.narrowed else self.opt_level

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of iree-compile beside the level."""
        return (_NARROW_FLAG,) if self.narrowed else ()

    def failed(self, error: str) -> Fallback:
        """This attempt, for the record."""
        return Fallback(opt_level=self.opt_level, narrowed=self.narrowed, error=error)

    def following(self, error: str, source: str, target: TargetDescription) -> Attempt | None:
        """What to try after `error`: narrower integers if these are what it is about, then the next lower level.

        Args:
            error: What iree-compile said.
            source: The module as iree-compile read it.
            target: What it is compiled for.

        Returns:
            None if nothing is left.
        """
        if not self.narrowed and "i64" in error and _lacks_i64(target) and can_narrow(source):
            return Attempt(self.opt_level, narrowed=True)
        lower = _LEVELS[: _LEVELS.index(self.opt_level)]
        return Attempt(lower[-1], self.narrowed) if lower else None


def can_narrow(source: str) -> bool:
    """Whether a module neither takes, returns nor stores 64-bit integers, nor names one that 32 bits do not hold.

    What it computes from those that it names may still overflow. Positions, which is what models compute in integers,
    do not: no dimension has so many elements.
    """
    if _BOUNDARY.search(source):
        return False
    lines = _LITERAL_LINE.findall(source)
    return all(-(2**31) <= int(number) < 2**31 for line in lines for number in _INTEGER.findall(line))


def _lacks_i64(target: TargetDescription) -> bool:
    return target.vulkan is not None and "int64" not in target.vulkan.compute

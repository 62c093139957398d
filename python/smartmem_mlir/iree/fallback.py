"""What to try next when iree-compile does not compile a module as it was asked to.

IREE's optimising levels fail on some modules that lower ones compile; its emulation of 64-bit integers, for devices
that have none, fails on some operations at every level; and so do kernels that reduce along subgroups, some of which
would also read vectors at the wrong place (see `iree.vectors`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict

from smartmem_mlir.targets import TargetDescription

_LEVELS = ("O0", "O1", "O2", "O3")
_NARROW_FLAG = "--iree-input-demote-i64-to-i32"
# What enters or leaves a module keeps its type: functions, and variables, which are weights.
_BOUNDARY = re.compile(r"^.*\b(?:util\.global|func\.func|util\.func)\b.*i64", re.MULTILINE)
_LITERAL_LINE = re.compile(r"^.*\bconstant\b.*i64.*$", re.MULTILINE)
_SUBGROUP_OPERATIONS = re.compile(r"(#iree_gpu\.target<.*?\bsubgroup = )[\w|]+")
_INTEGER = re.compile(r"(?<![\w.%#@])-?\d+\b(?!x)")


class Fallback(BaseModel):
    """A way in which a module was not compiled.

    Args:
        opt_level: IREE's optimisation level.
        narrowed: Whether integers of 64 bits were computed in 32.
        subgroups: Whether kernels could use the target's subgroup operations.
        error: What iree-compile said.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    opt_level: str
    narrowed: bool
    subgroups: bool
    error: str


@dataclass(frozen=True)
class Attempt:
    """A way to compile a module.

    Args:
        opt_level: IREE's optimisation level.
        narrowed: Whether integers of 64 bits are computed in 32.
        subgroups: Whether kernels may use the target's subgroup operations.
    """

    opt_level: str
    narrowed: bool = False
    subgroups: bool = True

    def __str__(self) -> str:
        parts = [self.opt_level]
        parts += ["64-bit integers as 32"] if self.narrowed else []
        parts += [] if self.subgroups else ["no subgroup operations"]
        return ", ".join(parts)

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of iree-compile beside the level."""
        return (_NARROW_FLAG,) if self.narrowed else ()

    def edited(self, source: str) -> str:
        """The module, as iree-compile is to read it."""
        return source if self.subgroups else _SUBGROUP_OPERATIONS.sub(r"\g<1>none", source)

    def failed(self, error: str) -> Fallback:
        """This attempt, for the record."""
        return Fallback(opt_level=self.opt_level, narrowed=self.narrowed, subgroups=self.subgroups, error=error)

    def following(self, error: str, source: str, target: TargetDescription) -> Attempt | None:
        """What to try after `error`.

        Narrower integers if these are what it is about, then no subgroup operations, then the next lower level.

        Args:
            error: What iree-compile said.
            source: The module as iree-compile read it.
            target: What it is compiled for.

        Returns:
            None if nothing is left.
        """
        if not self.narrowed and "i64" in error and _lacks_i64(target) and can_narrow(source):
            return replace(self, narrowed=True)
        if self.subgroups and target.vulkan is not None and target.vulkan.subgroup_operations:
            return replace(self, subgroups=False)
        lower = _LEVELS[: _LEVELS.index(self.opt_level)]
        return replace(self, opt_level=lower[-1]) if lower else None


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

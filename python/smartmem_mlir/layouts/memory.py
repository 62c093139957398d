"""Which memory each tensor of generated shaders is in, and why: what there is to tell about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Memory: TypeAlias = Literal["buffer", "texel_buffer", "image2d", "image2d_array"]
Reason: TypeAlias = Literal[
    "",
    "program-input",
    "program-output",
    "written-by-iree",
    "read-by-iree",
    "constant",
    "by-elements",
    "extent",
    "cost",
    "unmeasured",
]

EXPLANATIONS: Mapping[str, str] = {
    "": "it can be a two-dimensional image, and is",
    "program-input": "the caller gives it as a buffer",
    "program-output": "the caller gets it as a buffer",
    "written-by-iree": "an operation that is no generated shader writes it",
    "read-by-iree": "an operation that is no generated shader reads it",
    "constant": "it is a weight that is read as it is stored, or a constant in the program's text",
    "by-elements": "a shader accesses single elements of it, or writes constants around it that are no whole texels",
    "extent": "no two-dimensional image within the target's limits has a texel wherever shaders access four elements",
    "cost": "other memory costs less",
    "unmeasured": "the target does not say how fast its images are",
}
"""Every reason in words. What is too large for an image may still be in an array of images or a texel buffer."""


@dataclass(frozen=True)
class TensorMemory:
    """The memory of one tensor that generated shaders access.

    Args:
        tensor: The source nodes that compute it, or the weight's or the argument's name.
        role: Whether it is stored with the model.
        shape: Its extents as shaders see them; of a packed weight, as packed.
        element: Its elements, "f32" or "f16".
        bytes: Its size.
        memory: Where shaders find it.
        extents: Texels along x, y and layers of an image, of the one axis of a texel buffer; nothing for a buffer.
        copied: Whether shaders read a copy, which a kernel of its own makes in every inference.
        reason: Why it is not a two-dimensional image that shaders hand to each other; empty if it is.
        detail: Who is meant: a kernel, or an operation.
        costs_ns: Modelled time of all accesses of one inference, conversions included, by memory; nothing where the
            target does not say how fast its memories are.
    """

    tensor: str
    role: Literal["activation", "weight"]
    shape: tuple[int, ...]
    element: str
    bytes: int
    memory: Memory
    extents: tuple[int, ...] = ()
    copied: bool = False
    reason: Reason = ""
    detail: str = ""
    costs_ns: dict[Memory, float] = field(default_factory=dict)

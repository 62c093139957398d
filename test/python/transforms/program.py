"""Programs on tensors, written as MLIR text and computed with NumPy at the same time.

Each method of :class:`Program` appends one operator, in a spelling that importers use, and computes its result. The
text and the numbers share nothing but the shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

Array = np.ndarray
Shape = tuple[int, ...]
DTYPES = {"f32": np.float64, "f16": np.float64, "i64": np.int64}


@dataclass(frozen=True)
class Tensor:
    """A value of the program.

    Args:
        name: SSA name.
        array: Its elements; floating-point ones in double precision.
        element: MLIR element type.
    """

    name: str
    array: Array
    element: str = "f32"

    @property
    def shape(self) -> Shape:
        return self.array.shape

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def type(self) -> str:
        return tensor_type(self.shape, self.element)


def tensor_type(shape: Sequence[int], element: str = "f32") -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def affine_map(results: Sequence[str | int], rank: int) -> str:
    """`results` are dimension numbers, or expressions as text."""
    terms = ", ".join(f"d{r}" if isinstance(r, int) else r for r in results)
    return f"affine_map<({', '.join(f'd{i}' for i in range(rank))}) -> ({terms})>"


@dataclass(repr=False)
class Program:
    """One function, grown operator by operator."""

    name: str = "main"
    arguments: list[Tensor] = field(default_factory=list)
    results: list[Tensor] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    _count: int = 0

    # Text

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How hypothesis shows a failing example."""
        printer.text(self.text())

    def text(self) -> str:
        """The function."""
        arguments = ", ".join(f"{a.name}: {a.type}" for a in self.arguments)
        types = ", ".join(r.type for r in self.results)
        names = ", ".join(r.name for r in self.results)
        body = "\n".join(f"  {line}" for line in self.lines)
        return f"func.func @{self.name}({arguments}) -> ({types}) {{\n{body}\n  return {names} : {types}\n}}\n"

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def line(self, text: str) -> str:
        """Appends `<name> = text` and returns the name."""
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def append(self, text: str, array: Array, element: str = "f32") -> Tensor:
        """Appends an operation that computes `array`."""
        return Tensor(self.line(text), array, element)

    def generic(
        self,
        inputs: Sequence[tuple[Tensor | str, Sequence[str | int]]],
        output: Sequence[str | int],
        iterators: str,
        body: str,
        array: Array,
        *,
        element: str = "f32",
        init: str | None = None,
    ) -> Tensor:
        """A `linalg.generic`.

        Args:
            inputs: Tensors (or scalars of type f32, by name) with the results of their maps.
            output: Results of the output's map.
            iterators: `p` and `r`, one per dimension.
            body: Lines over `%x0, %x1, ...` and `%o`, the yield included.
            array: The result.
            element: Element type of the result.
            init: Name of the initial tensor; by default an empty one.
        """
        rank = len(iterators)
        kinds = ", ".join('"parallel"' if kind == "p" else '"reduction"' for kind in iterators)
        maps = ", ".join(affine_map(results, rank) for results in (*(m for _, m in inputs), output))
        type_ = tensor_type(array.shape, element)
        names = ", ".join(t.name if isinstance(t, Tensor) else t for t, _ in inputs)
        types = ", ".join(t.type if isinstance(t, Tensor) else "f32" for t, _ in inputs)
        elements = [t.element if isinstance(t, Tensor) else "f32" for t, _ in inputs]
        block = ", ".join([*(f"%x{i}: {e}" for i, e in enumerate(elements)), f"%o: {element}"])
        ins = f"ins({names} : {types}) " if inputs else ""
        out = init or self.line(f"tensor.empty() : {type_}")
        text = (
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {ins}outs({out} : {type_}) {{\n"
            f"  ^bb0({block}):\n    {body}\n  }} -> {type_}"
        )
        return self.append(text, array, element)

    # Sources

    def argument(self, shape: Sequence[int], element: str = "f32", below: int = 1) -> Tensor:
        """A new argument: values of about unit size, or integers below `below`."""
        rng = np.random.default_rng(len(self.arguments))
        array = rng.integers(0, below, shape) if element == "i64" else rng.uniform(-1, 1, shape)
        if element == "f16":
            array = array.astype(np.float16).astype(np.float64)
        tensor = Tensor(f"%arg{len(self.arguments)}", array.astype(DTYPES[element]), element)
        self.arguments.append(tensor)
        return tensor

    def constant(self, value: float, element: str = "f32") -> str:
        """A scalar, which must be the same number in f32, by name."""
        assert value == np.float32(value)
        return self.line(f"arith.constant {float(value)!r} : {element}")

    def fill(self, value: float, shape: Sequence[int], element: str = "f32") -> Tensor:
        """A `linalg.fill` of a constant."""
        type_ = tensor_type(shape, element)
        scalar = self.constant(value, element)
        empty = self.line(f"tensor.empty() : {type_}")
        text = f"linalg.fill ins({scalar} : {element}) outs({empty} : {type_}) -> {type_}"
        return self.append(text, np.full(shape, value), element)

    # Movement

    def transpose(self, x: Tensor, axes: Sequence[int], spelling: str = "transpose") -> Tensor:
        """Result axis i is axis `axes[i]`; spelled `transpose`, or as a generic that permutes `input` or `output`."""
        array, ranks = x.array.transpose(axes), list(range(x.rank))
        if spelling == "transpose":
            empty = self.line(f"tensor.empty() : {tensor_type(array.shape, x.element)}")
            into = f"outs({empty} : {tensor_type(array.shape, x.element)})"
            text = f"linalg.transpose ins({x.name} : {x.type}) {into} permutation = {list(axes)}"
            return self.append(text, array, x.element)
        inverse = list(np.argsort(axes))
        reads, writes = ([int(i) for i in inverse], ranks) if spelling == "input" else (ranks, list(axes))
        body = f"linalg.yield %x0 : {x.element}"
        return self.generic([(x, reads)], writes, "p" * x.rank, body, array, element=x.element)

    def collapse(self, x: Tensor, groups: Sequence[Sequence[int]]) -> Tensor:
        array = x.array.reshape([prod(x.shape[axis] for axis in group) for group in groups])
        text = f"tensor.collapse_shape {x.name} {[list(g) for g in groups]} : {x.type} into "
        return self.append(text + tensor_type(array.shape, x.element), array, x.element)

    def expand(self, x: Tensor, parts: Sequence[Sequence[int]]) -> Tensor:
        """Axis i becomes axes of extents `parts[i]`."""
        shape = [extent for part in parts for extent in part]
        groups, at = [], 0
        for part in parts:
            groups.append(list(range(at, at + len(part))))
            at += len(part)
        text = f"tensor.expand_shape {x.name} {groups} output_shape {shape} : {x.type} into "
        return self.append(text + tensor_type(shape, x.element), x.array.reshape(shape), x.element)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Through one axis, as importers spell reshapes that neither collapse nor expand."""
        flat = self.collapse(x, [range(x.rank)]) if x.rank > 1 else x
        return self.expand(flat, [shape]) if len(shape) > 1 else flat

    def slice(
        self, x: Tensor, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int], drop: bool = False
    ) -> Tensor:
        """`drop`: without the axes of extent 1."""
        at = tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, sizes, strides, strict=True))
        array = x.array[at]
        if drop:
            array = array.reshape([n for n in array.shape if n != 1])
        bounds = "".join(str(list(part)) + " " for part in (offsets, sizes, strides))
        result = tensor_type(array.shape, x.element)
        return self.append(f"tensor.extract_slice {x.name}{bounds}: {x.type} to {result}", array, x.element)

    def insert(self, x: Tensor, into: Tensor, offsets: Sequence[int], strides: Sequence[int]) -> Tensor:
        array = into.array.copy()
        at = tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, x.shape, strides, strict=True))
        array[at] = x.array
        bounds = "".join(str(list(part)) + " " for part in (offsets, x.shape, strides))
        text = f"tensor.insert_slice {x.name} into {into.name}{bounds}: {x.type} into {into.type}"
        return self.append(text, array, x.element)

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        array = np.concatenate([part.array for part in parts], axis)
        names, types = ", ".join(p.name for p in parts), ", ".join(p.type for p in parts)
        result = tensor_type(array.shape, parts[0].element)
        text = f"tensor.concat dim({axis}) {names} : ({types}) -> {result}"
        return self.append(text, array, parts[0].element)

    def roll(self, x: Tensor, shift: int, axis: int) -> Tensor:
        """By `shift` towards the end, 0 < shift < extent: two slices and a concatenation."""
        extent = x.shape[axis]
        zeros, ones = [0] * x.rank, [1] * x.rank
        parts = []
        for start, size in ((extent - shift, shift), (0, extent - shift)):
            offsets = [start if i == axis else z for i, z in enumerate(zeros)]
            sizes = [size if i == axis else n for i, n in enumerate(x.shape)]
            parts.append(self.slice(x, offsets, sizes, ones))
        return self.concat(parts, axis)

    def pad(self, x: Tensor, low: Sequence[int], high: Sequence[int], value: float = 0.0) -> Tensor:
        array = np.pad(x.array, list(zip(low, high, strict=True)), constant_values=value)
        scalar = self.constant(value, x.element)
        block = ", ".join(f"%i{axis}: index" for axis in range(x.rank))
        result = tensor_type(array.shape, x.element)
        text = (
            f"tensor.pad {x.name} low{list(low)} high{list(high)} {{\n  ^bb0({block}):\n"
            f"    tensor.yield {scalar} : {x.element}\n  }} : {x.type} to {result}"
        )
        return self.append(text, array, x.element)

    def broadcast(self, x: Tensor, shape: Sequence[int], axes: Sequence[int], spelling: str = "broadcast") -> Tensor:
        """To `shape`, along new axes; a generic also repeats axes of extent 1."""
        array = np.broadcast_to(np.expand_dims(x.array, tuple(axes)), shape)
        if spelling == "broadcast":
            empty = self.line(f"tensor.empty() : {tensor_type(shape, x.element)}")
            into = f"outs({empty} : {tensor_type(shape, x.element)})"
            text = f"linalg.broadcast ins({x.name} : {x.type}) {into} dimensions = {list(axes)}"
            return self.append(text, array, x.element)
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        reads: list[str | int] = [
            "0" if n == 1 and shape[axis] != 1 else axis for axis, n in zip(kept, x.shape, strict=True)
        ]
        body = f"linalg.yield %x0 : {x.element}"
        return self.generic([(x, reads)], list(range(len(shape))), "p" * len(shape), body, array, element=x.element)

    def flip(self, x: Tensor, axis: int) -> Tensor:
        """A generic that computes the mirrored index."""
        index = "\n    ".join(f"%i{i} = linalg.index {i} : index" for i in range(x.rank))
        at = ", ".join("%m" if i == axis else f"%i{i}" for i in range(x.rank))
        body = (
            f"{index}\n    %c = arith.constant {x.shape[axis] - 1} : index\n    %m = arith.subi %c, %i{axis} : index\n"
            f"    %e = tensor.extract {x.name}[{at}] : {x.type}\n    linalg.yield %e : {x.element}"
        )
        array = np.flip(x.array, axis)
        return self.generic([], list(range(x.rank)), "p" * x.rank, body, array, element=x.element)

    def gather(self, x: Tensor, indices: Tensor, axis: int) -> Tensor:
        """Along an axis at i64 positions, negative ones from the end: as PyTorch's index_select is imported."""
        order = list(range(x.rank))
        array = np.take(x.array, indices.array, axis)
        position = "\n    ".join(f"%i{i} = linalg.index {i} : index" for i in order if i != axis)
        at = ", ".join("%at" if i == axis else f"%i{i}" for i in order)
        body = (
            f"{position}\n    %zero = arith.constant 0 : i64\n    %n = arith.constant {x.shape[axis]} : i64\n"
            "    %neg = arith.cmpi slt, %x0, %zero : i64\n    %up = arith.addi %x0, %n : i64\n"
            "    %s = arith.select %neg, %up, %x0 : i64\n    %at = arith.index_cast %s : i64 to index\n"
            f"    %e = tensor.extract {x.name}[{at}] : {x.type}\n    linalg.yield %e : {x.element}"
        )
        return self.generic([(indices, [axis])], order, "p" * x.rank, body, array, element=x.element)

    def positions(self, values: Sequence[int]) -> Tensor:
        """A constant vector of i64."""
        text = f"arith.constant dense<{list(values)}> : {tensor_type([len(values)], 'i64')}"
        return self.append(text, np.array(values, np.int64), "i64")

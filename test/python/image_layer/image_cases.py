"""Programs for the image layer's tests and for device_check.py, with what NumPy says about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from image_kernels import Dim, Format, Kernel, Operand, Storage
from image_programs import Array, Function, Native, Step, evaluate, random_tensor, tensor_type

FORMATS: tuple[Format, ...] = ("rgba32f", "rgba16f", "rgba32ui")
# Width, height, depth; tails against the 8 x 8 workgroups, single texels, long and thin.
SHAPES: tuple[tuple[Dim, int, int, int], ...] = (
    ("2D", 1, 1, 1),
    ("2D", 5, 3, 1),
    ("2D", 64, 32, 1),
    ("2D", 257, 1, 1),
    ("2DArray", 5, 3, 3),
    ("2DArray", 16, 8, 1),
    ("3D", 9, 5, 3),
)

PACK = Kernel((Operand("buffer"),), Operand("image"), 16, 8, scale=2, bias=1, name="pack")
NEXT = Kernel((Operand("sampled"),), Operand("image"), 16, 8, bias=3, mirror=True, name="next")
UNPACK = Kernel((Operand("sampled"),), Operand("buffer"), 16, 8, mirror=True, name="unpack")
COPY = Kernel((Operand("buffer"),), Operand("buffer"), 16, 8, bias=5, mirror=True, name="copy")
TYPE = tensor_type(PACK)
VALUE = random_tensor(PACK)


def kernel(
    dim: Dim,
    extents: tuple[int, int, int],
    texel: Format,
    inputs: tuple[Storage, ...],
    output: Storage,
    *,
    push: bool,
    **options: object,
) -> Kernel:
    """A kernel of this shape over operands of these kinds."""
    width, height, depth = extents
    return Kernel(
        tuple(Operand(storage) for storage in inputs),
        Operand(output),
        width,
        height,
        depth,
        texel,
        dim,
        extents_in_push_constants=push,
        **options,  # type: ignore[arg-type]
    )


def network(index: int, dim: Dim, extents: tuple[int, int, int], texel: Format) -> Function:
    """Every kind of binding, fan-out and fan-in: `a` and `b` are images with several readers, `t` a texel buffer."""
    push = index % 2 == 1

    def make(inputs: tuple[Storage, ...], output: Storage, **options: object) -> Kernel:
        return kernel(dim, extents, texel, inputs, output, push=push, **options)

    pack = make(("buffer",), "image", scale=2, bias=1, mirror=True, name="pack")
    fetch = make(("sampled",), "image", scale=1, bias=3, mirror=True, name="fetch")
    add = make(("image", "sampled"), "image", scale=1, bias=0, name="add")
    unpack = make(("image",), "buffer", scale=1, bias=1, mirror=True, name="unpack")
    texels = make(("buffer",), "texel", scale=3, bias=2, name="texels")
    mix = make(("uniform_texel", "texel", "sampled", "buffer"), "buffer", scale=1, bias=0, mirror=True, name="mix")
    return Function(
        f"f{index}",
        {"in": tensor_type(pack)},
        [
            Step("a", pack, ("in",)),
            Step("b", fetch, ("a",)),
            Step("c", add, ("a", "b")),
            Step("t", texels, ("in",)),
            Step("x", unpack, ("c",)),
            Step("y", mix, ("t", "t", "b", "in")),
        ],
        ("x", "y"),
    )


def expect(function: Function, value: Array) -> list[Array]:
    """The network by NumPy."""
    pack, fetch, add, texels, unpack, mix = function.kernels()
    a = evaluate(pack, value)
    b = evaluate(fetch, a)
    c = evaluate(add, a, b)
    t = evaluate(texels, value)
    return [evaluate(unpack, c), evaluate(mix, t, t, b, value)]


def reshape(name: str, source: str, before: str, after: str, kernel: Kernel) -> Native:
    """Gives a tensor the kernel's shape: no code, only other extents over the same bytes."""
    flat = f"tensor<{kernel.width * kernel.height * 4}xf32>"
    text = f"%{name}_flat = tensor.collapse_shape %{source} [[0, 1, 2, 3]] : {before} into {flat}\n  "
    text += f"%{name} = tensor.expand_shape %{name}_flat [[0, 1, 2, 3]] output_shape "
    text += f"[1, {kernel.height}, {kernel.width}, 4] : {flat} into {after}"
    return Native(name, text, after)


def reuse_program() -> tuple[Function, np.ndarray]:
    """Images of other shapes, and buffers, take the memory of dead tensors."""
    steps: list[Step | Native] = []
    value, previous, held = VALUE, "in", TYPE
    for width, height in ((16, 8), (8, 16), (32, 4), (4, 32)):
        chain = [replace(kernel, width=width, height=height) for kernel in (PACK, NEXT, UNPACK, COPY)]
        name = f"v{width}"
        if held != tensor_type(chain[0]):
            steps.append(reshape(f"{name}_in", previous, held, tensor_type(chain[0]), chain[0]))
            previous, held = f"{name}_in", tensor_type(chain[0])
        value = value.reshape(1, height, width, 4)
        for index, kernel in enumerate(chain):
            steps.append(Step(f"{name}_{index}", kernel, (previous,)))
            previous, value = f"{name}_{index}", evaluate(kernel, value)
    return Function("f", {"in": TYPE}, steps, (previous,)), value


def mistakes() -> list[Function]:
    """A function for each mistake that the layer must notice, and `good`, without any, first."""
    inputs = {"in": TYPE}
    pack = Step("a", PACK, ("in",))
    pushed = replace(UNPACK, extents_in_push_constants=True)
    sizes = " ".join(f"%n{number} = arith.constant {number} : index" for number in (0, 1, 4, 16))
    half = "tensor<1x4x16x4xf32>"
    slice_ = f"%out = flow.tensor.slice %a[%n0, %n0, %n0, %n0 for %n1, %n4, %n16, %n4] : {TYPE} -> {half}"
    return [
        Function("good", inputs, [pack, Step("out", UNPACK, ("a",))]),
        Function("never_written", inputs, [Step("out", UNPACK, ("in",))]),
        Function("written_as_buffer", inputs, [Step("a", COPY, ("in",)), Step("out", UNPACK, ("a",))]),
        Function("read_as_buffer", inputs, [pack, Step("out", COPY, ("a",))]),
        Function("other_shape", inputs, [pack, Step("out", pushed, ("a",), (32, 4, 1))]),
        Function("too_large", inputs, [pack, Step("out", pushed, ("a",), (32, 8, 1))]),
        Function("too_small", inputs, [pack, Step("out", pushed, ("a",), (15, 8, 1))]),
        Function("returned", inputs, [pack, Step("b", UNPACK, ("a",))], ("a", "b")),
        Function("sliced", inputs, [pack, Native("out", f"{sizes}\n  {slice_}", half)]),
    ]


def chain(length: int, read: Storage, write: Storage) -> Function:
    """A chain of dependent dispatches of one workgroup: how long it takes says what a dispatch costs."""
    steps: list[Step | Native] = []
    for number in range(length):
        source = Operand("buffer" if number == 0 else read)
        target = Operand("buffer" if number == length - 1 else write)
        kernel = Kernel((source,), target, 8, 8, bias=1, name=f"link{number}")
        steps.append(Step(f"v{number}", kernel, (f"v{number - 1}" if number else "in",)))
    return Function("f", {"in": "tensor<1x8x8x4xf32>"}, steps, (f"v{length - 1}",))

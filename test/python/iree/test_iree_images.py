"""The check on IREE's flow IR that image tensors flow from shaders to shaders only."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mlir import ir

from smartmem_mlir.errors import CompilerError
from smartmem_mlir.iree.flow.images import check_images
from smartmem_mlir.iree.flow.read import summarize
from smartmem_mlir.iree.flow.summary import FlowSummary


def shader(name: str, *images: int) -> str:
    lines = b"".join(b"smartmem.image.v1 set=0 binding=%d w=2 h=3 fmt=rgba32f\0" % number for number in images)
    data = f'dense<"0x{lines.hex() or "00"}"> : vector<{len(lines) or 1}xi8>'
    objects = f'#hal.executable.objects<{{#t = [#hal.executable.object<{{path = "k.spv", data = {data}}}>]}}>'
    return (
        f'"hal.executable.source"() ({{ "hal.executable.source_end"() : () -> () }}) '
        f'{{objects = {objects}, sym_name = "{name}", sym_visibility = "private"}} : () -> ()\n'
    )


def dispatch(result: str, name: str, *operands: str) -> str:
    types = ", ".join(["tensor<6x4xf32>"] * len(operands))
    entry = f"{{entry_points = [@{name}::@{name}]}}"
    return f'{result} = "flow.dispatch"({", ".join(operands)}) {entry} : ({types}) -> tensor<6x4xf32>\n'


KERNELS = shader("write", 1) + shader("read", 0) + shader("plain") + shader("to_image_2x3", 1)


def check(body: str, task: Callable[[ir.Module], object] = check_images) -> object:
    text = f'{KERNELS}"util.func"() ({{ ^bb0(%x: tensor<6x4xf32>):\n{body} }}) {{sym_name = "main"}} : () -> ()'
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        return task(ir.Module.parse(text))


def test_from_shader_to_shader_is_right_and_counted() -> None:
    found = check(
        dispatch("%a", "write", "%x")
        + dispatch("%b", "read", "%a")
        + dispatch("%c", "plain", "%b")
        + '"util.return"(%c) : (tensor<6x4xf32>) -> ()'
    )
    assert found is not None
    assert found.tensors == 1  # type: ignore[attr-defined]
    assert found.activation_bytes == 6 * 96  # type: ignore[attr-defined]
    assert found.activation_image_bytes == 2 * 96  # type: ignore[attr-defined]


def test_a_copy_into_an_image_is_data_movement() -> None:
    body = dispatch("%a", "to_image_2x3", "%x") + dispatch("%b", "read", "%a")
    found = check(body + '"util.return"(%b) : (tensor<6x4xf32>) -> ()', summarize)
    assert isinstance(found, FlowSummary)
    assert {kernel.name: kernel.kind for kernel in found.entries} == {"to_image_2x3": "movement", "read": "extern"}
    assert (found.movement_kernels, found.movement_bytes) == (1, 2 * 96)


def test_without_images_there_is_nothing_to_say() -> None:
    assert check(dispatch("%a", "plain", "%x") + '"util.return"(%a) : (tensor<6x4xf32>) -> ()') is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('"util.return"(%a) : (tensor<6x4xf32>) -> ()', "reads an image tensor by util.return"),
        (
            '%s = "flow.tensor.clone"(%a) : (tensor<6x4xf32>) -> tensor<6x4xf32>\n' + dispatch("%b", "read", "%s"),
            "reads an image tensor by flow.tensor.clone|makes an image tensor by flow.tensor.clone",
        ),
        (dispatch("%b", "plain", "%a"), "reads an image tensor from the buffer"),
        (dispatch("%b", "read", "%x"), "makes an image tensor by an argument of the model"),
        (dispatch("%p", "plain", "%x") + dispatch("%b", "read", "%p"), "that another writes into a buffer"),
    ],
)
def test_anything_else_is_refused(body: str, message: str) -> None:
    with pytest.raises(CompilerError, match=message):
        check(dispatch("%a", "write", "%x") + body)

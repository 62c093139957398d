"""The layer under an application that is not IREE: command buffers submitted again, other entry points, aliasing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from image_kernels import Kernel, Operand
from image_programs import evaluate, random_tensor
from image_runner import NO_LOADER, Refuses

# The bindings load libvulkan when they are imported; where it must be there, every other test of this folder fails.
vk = pytest.importorskip("vulkan", reason=NO_LOADER, exc_type=OSError)
from vulkan_app import App  # noqa: E402

PACK = Kernel((Operand("buffer"),), Operand("image"), 8, 4, scale=2, bias=1, name="pack")
UNPACK = Kernel((Operand("sampled"),), Operand("buffer"), 8, 4, mirror=True, name="unpack")
COPY = Kernel((Operand("buffer"),), Operand("buffer"), 8, 4, bias=5, name="copy")
VALUE = random_tensor(PACK)
BYTES = VALUE.nbytes
IN, IMAGE, OUT, OTHER = ((offset, BYTES) for offset in (0, 4096, 8192, 12288))
EXPECTED = evaluate(UNPACK, evaluate(PACK, VALUE))


@pytest.fixture(autouse=True)
def input_in_place(app: App) -> None:
    """Every test finds VALUE at the start of the memory."""
    app.write(IN[0], VALUE)


def test_submitting_again(app: App) -> None:
    pack, unpack = app.pipeline(PACK), app.pipeline(UNPACK)
    with app.recording() as commands:
        pack.dispatch(commands, PACK, [IN, IMAGE])
        unpack.dispatch(commands, UNPACK, [IMAGE, OUT])
    for factor in (1, 3):
        value = VALUE * np.float32(factor)
        app.write(0, value)
        app.submit(commands)
        np.testing.assert_array_equal(app.read(OUT[0], VALUE), evaluate(UNPACK, evaluate(PACK, value)))


def test_recording_again_and_across_submissions(app: App) -> None:
    pack, unpack = app.pipeline(PACK), app.pipeline(UNPACK)
    commands = app.command_buffer()
    for one_time in (True, False, True):
        with app.recording(one_time=one_time, command_buffer=commands):
            pack.dispatch(commands, PACK, [IN, IMAGE])
        app.submit(commands)
        with app.recording(one_time=one_time, command_buffer=commands):
            unpack.dispatch(commands, UNPACK, [IMAGE, OUT])
        app.submit(commands)
        np.testing.assert_array_equal(app.read(OUT[0], VALUE), EXPECTED)


def test_sets_bound_before_an_image_dispatch_stay_bound(app: App) -> None:
    """The layer binds its own sets in between; the application's must be back for its next plain dispatch."""
    pack, copy = app.pipeline(PACK), app.pipeline(COPY)
    with app.recording() as commands:
        copy.bind(commands, [IN, OUT])
        vk.vkCmdBindPipeline(commands, vk.VK_PIPELINE_BIND_POINT_COMPUTE, pack.handle)
        vk.vkCmdDispatch(commands, 1, 1, 1)  # Packs from IN; "OUT" becomes an image.
        app.barrier(commands)
        copy.dispatch(commands, COPY, None)
    app.submit(commands)
    np.testing.assert_array_equal(app.read(OUT[0], VALUE), evaluate(COPY, VALUE))


def test_secondary_command_buffers(app: App) -> None:
    pack, unpack = app.pipeline(PACK), app.pipeline(UNPACK)
    secondary = app.command_buffer(level=vk.VK_COMMAND_BUFFER_LEVEL_SECONDARY)
    inheritance = vk.VkCommandBufferInheritanceInfo()
    vk.vkBeginCommandBuffer(secondary, vk.VkCommandBufferBeginInfo(pInheritanceInfo=inheritance))
    pack.dispatch(secondary, PACK, [IN, IMAGE])
    vk.vkEndCommandBuffer(secondary)
    with app.recording() as commands:
        vk.vkCmdExecuteCommands(commands, 1, [secondary])
        unpack.dispatch(commands, UNPACK, [IMAGE, OUT])
    app.submit(commands)
    np.testing.assert_array_equal(app.read(OUT[0], VALUE), EXPECTED)


def test_two_buffers_on_one_memory(app: App) -> None:
    """A tensor is where its bytes are, whatever the buffer is called."""
    pack, unpack = app.pipeline(PACK), app.pipeline(UNPACK)
    alias = app.own(vk.vkDestroyBuffer, app.create_buffer())
    with app.recording() as commands:
        pack.dispatch(commands, PACK, [IN, IMAGE])
        unpack.dispatch(commands, UNPACK, [IMAGE, OUT], buffer=alias)
    app.submit(commands)
    np.testing.assert_array_equal(app.read(OUT[0], VALUE), EXPECTED)


def test_reading_before_writing(app: App, refuses: Refuses) -> None:
    unpack = app.pipeline(UNPACK)
    with app.recording() as commands:
        unpack.dispatch(commands, UNPACK, [IMAGE, OUT])
    with refuses("kernel 'unpack', binding 0 reads bytes [4096, 4608)"):
        app.submit(commands)


def test_order_of_submission_counts_and_not_of_recording(app: App, refuses: Refuses) -> None:
    pack, unpack = app.pipeline(PACK), app.pipeline(UNPACK)
    with app.recording() as reader:
        unpack.dispatch(reader, UNPACK, [IMAGE, OUT])
    with app.recording() as writer:
        pack.dispatch(writer, PACK, [IN, IMAGE])
    with refuses("holds no tensor"):
        app.submit(reader)
    app.submit(writer)
    app.submit(reader)
    np.testing.assert_array_equal(app.read(OUT[0], VALUE), EXPECTED)


def test_a_refused_submission_changes_nothing(app: App, refuses: Refuses) -> None:
    """Its writes never ran, so what they would have made valid must not be readable afterwards."""
    pack, unpack = app.pipeline(PACK), app.pipeline(UNPACK)
    with app.recording() as bad:
        pack.dispatch(bad, PACK, [IN, IMAGE])
        unpack.dispatch(bad, UNPACK, [OTHER, OUT])
    with app.recording() as reader:
        unpack.dispatch(reader, UNPACK, [IMAGE, OUT])
    with refuses("binding 0 reads bytes [12288, 12800)"):
        app.submit(bad)
    with refuses("binding 0 reads bytes [4096, 4608)"):
        app.submit(reader)


HEAD, LAST = (IMAGE[0] - 256, 260), (IMAGE[0] + BYTES - 4, 4)


@pytest.mark.parametrize(
    ("how", "place"),
    [("fill", HEAD), ("fill", IMAGE), ("fill", LAST), ("update", LAST), ("copy", LAST), ("kernel", (3840, BYTES))],
)
def test_overwriting_a_byte_kills_the_image(app: App, refuses: Refuses, how: str, place: tuple[int, int]) -> None:
    pack, unpack, copy = app.pipeline(PACK), app.pipeline(UNPACK), app.pipeline(COPY)
    with app.recording() as commands:
        pack.dispatch(commands, PACK, [IN, IMAGE])
        if how == "fill":
            vk.vkCmdFillBuffer(commands, app.buffer, *place, 0)
        elif how == "update":
            vk.vkCmdUpdateBuffer(commands, app.buffer, *place, vk.ffi.new("char[]", place[1]))
        elif how == "copy":
            region = vk.VkBufferCopy(srcOffset=0, dstOffset=place[0], size=place[1])
            vk.vkCmdCopyBuffer(commands, app.buffer, app.buffer, 1, [region])
        else:
            copy.dispatch(commands, COPY, [IN, place])
        app.barrier(commands)
        unpack.dispatch(commands, UNPACK, [IMAGE, OUT])
    with refuses("holds no tensor"):
        app.submit(commands)


@pytest.mark.parametrize(("width", "height", "offset"), [(4, 8, 0), (8, 4, -256), (8, 4, 256), (2, 1, 256)])
def test_an_image_kills_those_it_overlaps(app: App, refuses: Refuses, width: int, height: int, offset: int) -> None:
    other = replace(PACK, width=width, height=height)
    place = (IMAGE[0] + offset, width * height * 16)
    pack, unpack, pack_other = app.pipeline(PACK), app.pipeline(UNPACK), app.pipeline(other)
    with app.recording() as commands:
        pack.dispatch(commands, PACK, [IN, IMAGE])
        pack_other.dispatch(commands, other, [(0, place[1]), place])
        unpack.dispatch(commands, UNPACK, [IMAGE, OUT])
    with refuses(f"but those bytes are held by a {width}x{height} rgba32f image at bytes [{place[0]}, "):
        app.submit(commands)


@pytest.mark.parametrize("how", ["copy", "kernel", "indirect"])
def test_reading_stale_bytes(app: App, refuses: Refuses, how: str) -> None:
    pack, copy = app.pipeline(PACK), app.pipeline(COPY)
    with app.recording() as commands:
        pack.dispatch(commands, PACK, [IN, IMAGE])
        if how == "copy":
            region = vk.VkBufferCopy(srcOffset=IMAGE[0] + 500, dstOffset=OUT[0], size=BYTES)
            vk.vkCmdCopyBuffer(commands, app.buffer, app.buffer, 1, [region])
        elif how == "kernel":
            copy.dispatch(commands, COPY, [IMAGE, OUT])
        else:
            copy.bind(commands, [IN, OUT])
            vk.vkCmdBindPipeline(commands, vk.VK_PIPELINE_BIND_POINT_COMPUTE, copy.handle)
            vk.vkCmdDispatchIndirect(commands, app.buffer, IMAGE[0])
    with refuses("the bytes in the buffer are stale"):
        app.submit(commands)


def test_neighbours_do_not_disturb(app: App) -> None:
    pack, unpack, copy = app.pipeline(PACK), app.pipeline(UNPACK), app.pipeline(COPY)
    with app.recording() as commands:
        pack.dispatch(commands, PACK, [IN, IMAGE])
        vk.vkCmdFillBuffer(commands, app.buffer, IMAGE[0] - 4, 4, 0)
        vk.vkCmdFillBuffer(commands, app.buffer, IMAGE[0] + BYTES, 4, 0)
        copy.dispatch(commands, COPY, [IN, OTHER])
        unpack.dispatch(commands, UNPACK, [IMAGE, OUT])
    app.submit(commands)
    np.testing.assert_array_equal(app.read(OUT[0], VALUE), EXPECTED)

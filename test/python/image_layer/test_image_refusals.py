"""What the layer does not understand it refuses when the pipeline is made, or when the dispatch is recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from image_kernels import Kernel, Operand, Storage
from image_programs import random_tensor
from image_runner import NO_LOADER, Refuses

# The bindings load libvulkan when they are imported; where it must be there, every other test of this folder fails.
vk = pytest.importorskip("vulkan", reason=NO_LOADER, exc_type=OSError)
from vulkan_app import App  # noqa: E402

GOOD = "smartmem.image.v1 set=0 binding=1 fmt=rgba32f w=8 h=4"
PACK = Kernel((Operand("buffer"),), Operand("image"), 8, 4, name="pack")
BYTES = random_tensor(PACK).nbytes


def pack(line: str) -> Kernel:
    """The kernel with this line about its image."""
    return replace(PACK, output=Operand("image", metadata=line))


@pytest.mark.parametrize(
    "line",
    [
        GOOD,
        "smartmem.image.v1 h=pc2 w=pc1 binding=1 set=0",  # The format is the type's.
        GOOD + " offset=0",
        GOOD.replace("w=8", "w=4294967295").replace("w=4294967295", "w=00000008"),
        "smartmem.kernel.v1\nsmartmem.kernel.v1 name=x\n" + GOOD,
    ],
)
def test_accepted_metadata(app: App, line: str) -> None:
    first, *rest = reversed(line.split("\n"))
    app.pipeline(replace(pack(first), extra_metadata=tuple(rest)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "no smartmem.image.v1 line"),
        ("smartmem.image.v2 set=0 binding=1 w=8 h=4", "this layer knows smartmem.image.v1"),
        ("smartmem.", "this layer knows"),
        ("smartmem.image.v1", "'set' and 'binding' are required"),
        ("smartmem.image.v1 set=0 w=8 h=4", "'set' and 'binding' are required"),
        (GOOD.replace("binding=1", "binding=3"), "no smartmem.image.v1 line"),
        (GOOD.replace("w=8", "w="), "'' is not an unsigned 32-bit number"),
        (GOOD.replace("w=8", "w=-8"), "'-8' is not an unsigned"),
        (GOOD.replace("w=8", "w=0x8"), "'0x8' is not an unsigned"),
        (GOOD.replace("w=8", "w=8.0"), "'8.0' is not an unsigned"),
        (GOOD.replace("w=8", "w=4294967296"), "'4294967296' is not an unsigned"),
        (GOOD.replace("w=8", "w=99999999999999999999"), "is not an unsigned"),
        (GOOD.replace("w=8", "w=0"), "an extent is zero"),
        (GOOD.replace("w=8", "w=pc"), "'' is not an unsigned"),
        (GOOD.replace("w=8", "w=pc64"), "push-constant dword 64 is out of range"),
        (GOOD.replace("w=8", "w=pc3"), "dword 3 of a pipeline layout with 12 bytes"),
        (GOOD.replace("w=8", "w=8 w=8"), "field 'w' appears twice"),
        (GOOD.replace("w=8", "width=8"), "unknown field 'width'"),
        (GOOD.replace(" w=8", "  w=8"), "empty field"),
        (GOOD + " ", "empty field"),
        (GOOD.replace("fmt=rgba32f", "fmt=rgba8"), "unknown format 'rgba8'"),
        (GOOD.replace("fmt=rgba32f", "fmt=rgba16f"), "the metadata says rgba16f and the shader's type rgba32f"),
        (GOOD.replace(" w=8", ""), "wrong extents"),
        (GOOD + " d=1", "wrong extents"),
        (GOOD.replace("w=8", "w=100000"), "100000 texels exceed maxImageDimension2D"),
        ("smartmem.kernel.v1 exact=1", "unknown field 'exact'"),
        ("smartmem.kernel.v1 name=", "unknown field 'name'"),
        ("smartmem.canary.v1", "'spec' is required"),
    ],
)
def test_refused_metadata(app: App, refuses: Refuses, line: str, message: str) -> None:
    with refuses(message):
        app.pipeline(pack(line))


def test_two_lines_for_one_binding(app: App, refuses: Refuses) -> None:
    with refuses("the binding is described twice"):
        app.pipeline(replace(PACK, extra_metadata=(GOOD,)))


FETCH = Kernel((Operand("sampled"),), Operand("buffer"), 8, 4, name="fetch")


@pytest.mark.parametrize(
    ("image_type", "message"),
    [
        ("OpTypeImage %float 2D 0 0 0 2 Rgba8", "the texel format must be rgba32f, rgba16f or rgba32ui"),
        ("OpTypeImage %float Cube 0 0 0 2 Rgba32f", "only 2-D, 2-D array, 3-D and buffer images"),
    ],
)
def test_unsupported_image_types(app: App, refuses: Refuses, image_type: str, message: str) -> None:
    text = PACK.assembly().replace("OpTypeImage %float 2D 0 0 0 2 Rgba32f", image_type)
    if "Cube" in text:
        point = "%point = OpCompositeConstruct"
        text = text.replace(f"{point} %v2uint %id0 %id1", f"{point} %v3uint %id0 %id1 %uint_0")
    with refuses(message):
        app.pipeline(text, bindings=2)


def test_combined_image_sampler(app: App, refuses: Refuses) -> None:
    text = FETCH.assembly()
    text = text.replace(
        "%pointer0 = OpTypePointer UniformConstant %type_sampled",
        "%combined = OpTypeSampledImage %type_sampled\n%pointer0 = OpTypePointer UniformConstant %combined",
    )
    text = text.replace(
        "%handle0 = OpLoad %type_sampled %b0", "%both = OpLoad %combined %b0\n%handle0 = OpImage %type_sampled %both"
    )
    with refuses("combined image samplers are not supported"):
        app.pipeline(text, bindings=2)


def test_uint_image_needs_a_uint_format(app: App, refuses: Refuses) -> None:
    kernel = replace(FETCH, format="rgba32ui")
    with refuses("the shader's sampled type does not fit rgba32f"):
        app.pipeline(kernel.assembly().replace("fmt=rgba32ui", "fmt=rgba32f"), bindings=2)


def test_format_must_be_named_once(app: App, refuses: Refuses) -> None:
    with refuses("neither the shader's type nor the metadata names the texel format"):
        app.pipeline(FETCH.assembly().replace(" fmt=rgba32f", ""), bindings=2)


def test_binding_must_be_a_plain_storage_buffer(app: App, refuses: Refuses) -> None:
    with refuses("only a plain storage buffer can be backed by an image"):
        app.pipeline(PACK.assembly(), bindings=2, type_=vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC)


def test_binding_must_exist(app: App, refuses: Refuses) -> None:
    with refuses("the pipeline layout nothing; compile and run with the descriptor ABI"):
        app.pipeline(PACK.assembly(), bindings=1)


def test_an_application_may_use_images_itself(app: App) -> None:
    """A layout that says image is none of the layer's business."""
    kernel = Kernel((), Operand("image", metadata=""), 8, 4, name="own")
    text = kernel.assembly().replace("OpFMul %v4float None %scale", "OpFMul %v4float %bias %scale")
    app.pipeline(text, bindings=1, type_=vk.VK_DESCRIPTOR_TYPE_STORAGE_IMAGE)


@pytest.mark.parametrize(
    ("storage", "ranges", "message"),
    [
        ("image", [(0, BYTES), (4096, BYTES - 16)], "a 8x4 rgba32f image takes 512 bytes and the tensor has 496"),
        ("image", [(0, BYTES), (4096, BYTES + 16)], "a 8x4 rgba32f image takes 512 bytes and the tensor has 528"),
        ("texel", [(0, BYTES), (4096, BYTES - 8)], "is not a whole number of rgba32f texels"),
    ],
)
def test_sizes_must_agree(
    app: App, refuses: Refuses, storage: Storage, ranges: list[tuple[int, int]], message: str
) -> None:
    kernel = replace(PACK, output=Operand(storage))
    pipeline = app.pipeline(kernel)
    with refuses(message), app.recording() as commands:
        pipeline.dispatch(commands, kernel, ranges)


def test_extents_in_push_constants_are_checked_when_recorded(app: App, refuses: Refuses) -> None:
    kernel = replace(PACK, extents_in_push_constants=True)
    pipeline = app.pipeline(kernel)
    with refuses("an extent of the 0x0 rgba32f image is zero"), app.recording() as commands:
        pipeline.dispatch(commands, kernel, [(0, BYTES), (4096, BYTES)])


@pytest.mark.parametrize(
    ("limits", "storage", "message"),
    [
        ("maxImageDimension2D=7", "image", "8 texels exceed maxImageDimension2D = 7"),
        ("maxTexelBufferElements=31", "texel", "32 texels exceed maxTexelBufferElements = 31"),
    ],
)
def test_lowered_limits(
    loaded: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refuses: Refuses,
    limits: str,
    storage: Storage,
    message: str,
) -> None:
    monkeypatch.setenv("SMARTMEM_IMAGE_LIMITS", limits)
    app = App(tmp_path)
    kernel = replace(PACK, output=Operand(storage), extents_in_push_constants=storage == "texel")
    with refuses(message):
        pipeline = app.pipeline(kernel)
        with app.recording() as commands:
            pipeline.dispatch(commands, kernel, [(0, BYTES), (4096, BYTES)])
    app.close()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SMARTMEM_IMAGE_LIMITS", "maxImageDimension4D=1", "'maxImageDimension4D=1' is not <known limit>=<number>"),
        ("SMARTMEM_IMAGE_LIMITS", "maxImageDimension2D=lots", "is not an unsigned number"),
        ("SMARTMEM_IMAGE_MAX_BYTES", "-1", "SMARTMEM_IMAGE_MAX_BYTES=-1 is not an unsigned number"),
        ("SMARTMEM_IMAGE_POOL_BYTES", "1MB", "is not an unsigned number"),
    ],
)
def test_bad_environment(
    loaded: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refuses: Refuses,
    name: str,
    value: str,
    message: str,
) -> None:
    monkeypatch.setenv(name, value)
    with refuses(message):
        App(tmp_path)


def test_memory_budget(loaded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Refuses) -> None:
    monkeypatch.setenv("SMARTMEM_IMAGE_MAX_BYTES", "100")
    app = App(tmp_path)
    pipeline = app.pipeline(PACK)
    with refuses("exceeds SMARTMEM_IMAGE_MAX_BYTES=100 with 0 bytes in use"), app.recording() as commands:
        pipeline.dispatch(commands, PACK, [(0, BYTES), (4096, BYTES)])
    app.close()


def test_aliased_sparse_memory(loaded: None, tmp_path: Path, refuses: Refuses) -> None:
    """No CPU driver has sparse memory, so the buffer only claims to; validation would object, and is left out."""
    flags = vk.VK_BUFFER_CREATE_SPARSE_BINDING_BIT | vk.VK_BUFFER_CREATE_SPARSE_ALIASED_BIT
    app = App(tmp_path, buffer_flags=flags)
    pipeline = app.pipeline(PACK)
    with refuses("VK_BUFFER_CREATE_SPARSE_ALIASED_BIT"), app.recording() as commands:
        pipeline.dispatch(commands, PACK, [(0, BYTES), (4096, BYTES)])
    app.close()


def test_without_timeline_semaphores(loaded: None, tmp_path: Path, refuses: Refuses) -> None:
    app = App(tmp_path, timeline=False)
    pipeline = app.pipeline(PACK)
    with app.recording() as commands:
        pipeline.dispatch(commands, PACK, [(0, BYTES), (4096, BYTES)])
    with refuses("timelineSemaphore"):
        app.submit(commands)
    app.close()

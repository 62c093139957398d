"""Examples at the end of each command's `--help`; the tests parse every one of them."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "compile": (
        "smartmem compile swin.onnx -o swin-cpu --verify",
        "smartmem compile bert.onnx --dim batch=1 --dim tokens=128 --target vulkan",
        "smartmem compile --config swin.toml --opt-level O2",
        "smartmem compile swin.onnx --emit passes -o swin.mlir",
    ),
    "run": ("smartmem run swin-cpu --input image=image.npy --output results",),
    "verify": ("smartmem verify swin-cpu --seeds 3",),
    "inspect": ("smartmem inspect swin-cpu --json",),
    "explain": (
        "smartmem explain swin-cpu",
        "smartmem explain swin-cpu --node /layers.0/attn/Transpose",
        "smartmem explain swin-cpu --html swin.html --measure",
    ),
    "draw-layout": (
        "smartmem draw-layout '(d0, d1) -> (d0, d1 mod 52), buffer, pad = -inf' --shape 4x49",
        "smartmem draw-layout '(d0, d1, d2, d3) -> (d0, d1 floordiv 4, d2, d3, d1 mod 4), image2d' "
        "--shape 1x13x4x4 -o nchw.svg",
    ),
    "check": ("smartmem check swin-cpu",),
    "doctor": ("smartmem doctor --json",),
}


def epilog(command: str) -> str:
    """The last paragraphs of a command's help."""
    return "Examples:\n\n" + "\n\n".join(EXAMPLES[command])

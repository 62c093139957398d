"""The demo network: a small Swin-style transformer, built as ONNX with NumPy alone.

It has what makes the real ones slow on a phone: a convolution stem, windows that are partitioned, shifted (a roll
spelled as slices and concatenations, the way exporters spell it) and put back, fused QKV products whose heads are
moved by a 5-D transpose, a relative position bias, an additive mask, and patch merging by strided slices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class DemoConfig:
    """Sizes of the demo network; the defaults give 1.3 M parameters.

    Args:
        image: Height and width of the input, a multiple of 4 * window.
        dims: Channels per stage; each stage halves height and width.
        depth: Blocks per stage; every second block shifts its windows.
        window: Edge of an attention window, in tokens.
        head_dim: Channels of one attention head.
        classes: Size of the output.
        seed: Seed of all weights.
    """

    image: int = 112
    dims: tuple[int, ...] = (48, 96, 192)
    depth: int = 2
    window: int = 7
    head_dim: int = 24
    classes: int = 100
    seed: int = 0


@dataclass
class _Graph:
    """Nodes and weights under construction; every method returns the name of the tensor it made."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def const(self, name: str, value: Array) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def ints(self, name: str, *values: int) -> str:
        return self.const(name, np.asarray(values, np.int64))

    def weight(self, name: str, *shape: int, fan_in: int, mean: float = 0.0) -> str:
        values = self.rng.standard_normal(shape) / np.sqrt(fan_in) + mean
        return self.const(name, values.astype(np.float32))

    def op(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def linear(self, name: str, x: str, n_in: int, n_out: int) -> str:
        product = self.op("MatMul", f"{name}/matmul", x, self.weight(f"{name}.weight", n_in, n_out, fan_in=n_in))
        return self.op("Add", f"{name}/add", product, self.weight(f"{name}.bias", n_out, fan_in=100))

    def norm(self, name: str, x: str, channels: int) -> str:
        scale = self.weight(f"{name}.weight", channels, fan_in=50, mean=1.0)
        return self.op("LayerNormalization", name, x, scale, self.weight(f"{name}.bias", channels, fan_in=50), axis=-1)

    def gelu(self, name: str, x: str) -> str:
        erf = self.op("Erf", f"{name}/erf", self.op("Mul", f"{name}/scaled", x, self._scalar("sqrt_half", 0.5**0.5)))
        sigma = self.op("Add", f"{name}/add", erf, self._scalar("one", 1.0))
        return self.op("Mul", name, self.op("Mul", f"{name}/mul", x, sigma), self._scalar("half", 0.5))

    def _scalar(self, name: str, value: float) -> str:
        if all(w.name != name for w in self.weights):
            self.const(name, np.asarray(value, np.float32))
        return name

    def reshape(self, name: str, x: str, *shape: int) -> str:
        return self.op("Reshape", name, x, self.ints(f"{name}.shape", *shape))

    def slice(self, name: str, x: str, start: int, end: int, axis: int, step: int = 1) -> str:
        bounds = [
            self.ints(f"{name}.{part}", v)
            for part, v in zip(("start", "end", "axis", "step"), (start, end, axis, step), strict=True)
        ]
        return self.op("Slice", name, x, *bounds)

    def roll(self, name: str, x: str, shift: int) -> str:
        """Rolls axes 1 and 2 of [B, H, W, C] by `shift`, as two slices and a concatenation an axis."""
        for axis in (1, 2):
            head = self.slice(f"{name}/tail{axis}", x, -shift, np.iinfo(np.int64).max, axis)
            tail = self.slice(f"{name}/head{axis}", x, 0, -shift, axis)
            x = self.op("Concat", f"{name}/concat{axis}", head, tail, axis=axis)
        return x


def _position_index(window: int) -> Array:
    """Index into the (2w-1)^2 relative position table for each pair of tokens, [w*w, w*w]."""
    y, x = np.divmod(np.arange(window * window), window)
    dy, dx = y[:, None] - y[None] + window - 1, x[:, None] - x[None] + window - 1
    return np.asarray(dy * (2 * window - 1) + dx, np.int64)


def _shift_mask(size: int, window: int, shift: int) -> Array:
    """Additive mask that keeps tokens of different image regions apart: [windows, w*w, w*w], 0 or -100."""
    region = np.digitize(np.arange(size), [size - window, size - shift])
    labels = region[:, None] * 3 + region[None]
    n = size // window
    tokens = labels.reshape(n, window, n, window).transpose(0, 2, 1, 3).reshape(n * n, window * window)
    return np.where(tokens[:, :, None] == tokens[:, None], 0.0, -100.0).astype(np.float32)


def _attention(g: _Graph, name: str, x: str, size: int, dim: int, shift: int, config: DemoConfig) -> str:
    """Window attention over [windows, tokens, dim]."""
    windows, tokens, heads = (size // config.window) ** 2, config.window**2, dim // config.head_dim
    qkv = g.reshape(
        f"{name}/qkv_heads",
        g.linear(f"{name}.qkv", x, dim, 3 * dim),
        windows,
        tokens,
        3,
        heads,
        config.head_dim,
    )
    qkv = g.op("Transpose", f"{name}/qkv_transpose", qkv, perm=[2, 0, 3, 1, 4])
    index = [g.const(f"{name}.{part}_index", np.asarray(i, np.int64)) for i, part in enumerate("qkv")]
    q, k, v = (g.op("Gather", f"{name}/{part}", qkv, i, axis=0) for part, i in zip("qkv", index, strict=True))
    q = g.op("Mul", f"{name}/q_scaled", q, g.const(f"{name}.scale", np.asarray(config.head_dim**-0.5, np.float32)))
    scores = g.op("MatMul", f"{name}/scores", q, g.op("Transpose", f"{name}/k_transpose", k, perm=[0, 1, 3, 2]))
    table = g.weight(f"{name}.relative_position_bias_table", (2 * config.window - 1) ** 2, heads, fan_in=4)
    bias = g.op(
        "Gather",
        f"{name}/bias_gather",
        table,
        g.const(f"{name}.position_index", _position_index(config.window)),
        axis=0,
    )
    bias = g.op("Transpose", f"{name}/bias_transpose", bias, perm=[2, 0, 1])
    scores = g.op("Add", f"{name}/biased", scores, g.reshape(f"{name}/bias", bias, 1, heads, tokens, tokens))
    if shift:
        mask = g.const(f"{name}.mask", _shift_mask(size, config.window, shift)[:, None])
        scores = g.op("Add", f"{name}/masked", scores, mask)
    context = g.op("MatMul", f"{name}/context", g.op("Softmax", f"{name}/softmax", scores, axis=-1), v)
    context = g.op("Transpose", f"{name}/context_transpose", context, perm=[0, 2, 1, 3])
    return g.linear(f"{name}.proj", g.reshape(f"{name}/merge_heads", context, windows, tokens, dim), dim, dim)


def _block(g: _Graph, name: str, x: str, size: int, dim: int, shift: int, config: DemoConfig) -> str:
    """One Swin block over [1, size, size, dim]."""
    n, w = size // config.window, config.window
    y = g.norm(f"{name}.norm1", x, dim)
    if shift:
        y = g.roll(f"{name}/roll", y, -shift)
    y = g.op(
        "Transpose",
        f"{name}/partition",
        g.reshape(f"{name}/split", y, 1, n, w, n, w, dim),
        perm=[0, 1, 3, 2, 4, 5],
    )
    y = _attention(g, f"{name}.attn", g.reshape(f"{name}/windows", y, n * n, w * w, dim), size, dim, shift, config)
    y = g.op(
        "Transpose",
        f"{name}/reverse",
        g.reshape(f"{name}/unmerge", y, 1, n, n, w, w, dim),
        perm=[0, 1, 3, 2, 4, 5],
    )
    y = g.reshape(f"{name}/image", y, 1, size, size, dim)
    if shift:
        y = g.roll(f"{name}/unroll", y, shift)
    x = g.op("Add", f"{name}/residual1", x, y)
    y = g.linear(f"{name}.mlp.fc1", g.norm(f"{name}.norm2", x, dim), dim, 4 * dim)
    y = g.linear(f"{name}.mlp.fc2", g.gelu(f"{name}.mlp/gelu", y), 4 * dim, dim)
    return g.op("Add", f"{name}/residual2", x, y)


def _merge_patches(g: _Graph, name: str, x: str, size: int, dim: int) -> str:
    """Halves [1, size, size, dim] in height and width: four strided slices side by side, norm, linear."""
    end = int(np.iinfo(np.int64).max)
    corners = [
        g.slice(f"{name}/x{dy}{dx}", g.slice(f"{name}/y{dy}{dx}", x, dy, end, 1, 2), dx, end, 2, 2)
        for dx in (0, 1)
        for dy in (0, 1)
    ]
    joined = g.norm(f"{name}.norm", g.op("Concat", f"{name}/concat", *corners, axis=-1), 4 * dim)
    return g.op(
        "MatMul",
        f"{name}/reduction",
        joined,
        g.weight(f"{name}.reduction.weight", 4 * dim, 2 * dim, fan_in=4 * dim),
    )


def build_demo(config: DemoConfig | None = None) -> onnx.ModelProto:
    """Builds the demo network.

    Args:
        config: Sizes and seed.

    Returns:
        A checked ONNX model (opset 17): input `image` [1, 3, H, H], output `logits` [1, classes], both f32.
    """
    config = config or DemoConfig()
    g = _Graph(np.random.default_rng(config.seed))
    x, channels = "image", 3
    for i, out in enumerate((config.dims[0] // 2, config.dims[0])):
        kernel = g.weight(f"stem.{i}.weight", out, channels, 3, 3, fan_in=9 * channels)
        bias = g.weight(f"stem.{i}.bias", out, fan_in=50)
        x = g.op("Conv", f"stem.{i}/conv", x, kernel, bias, strides=[2, 2], pads=[1, 1, 1, 1], kernel_shape=[3, 3])
        x, channels = g.gelu(f"stem.{i}/gelu", x), out
    x = g.op("Transpose", "stem/nhwc", x, perm=[0, 2, 3, 1])
    size = config.image // 4
    for stage, dim in enumerate(config.dims):
        for i in range(config.depth):
            # A stage of one window has nothing to shift, as in the original.
            shift = config.window // 2 if i % 2 and size > config.window else 0
            x = _block(g, f"stages.{stage}.blocks.{i}", x, size, dim, shift, config)
        if stage + 1 < len(config.dims):
            x, size = _merge_patches(g, f"stages.{stage}.merge", x, size, dim), size // 2
    x = g.op("ReduceMean", "pool", g.norm("norm", x, config.dims[-1]), axes=[1, 2], keepdims=0)
    g.nodes[-1].output[0] = x = "pooled"
    g.linear("head", x, config.dims[-1], config.classes)
    g.nodes[-1].output[0] = "logits"
    graph = helper.make_graph(
        g.nodes,
        "smartmem_demo",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, config.image, config.image])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, config.classes])],
        g.weights,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="smartmem", ir_version=9
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def save_demo(path: Path, config: DemoConfig | None = None) -> None:
    """Writes the demo network to `path` as one ONNX file of about 5 MB."""
    onnx.save(build_demo(config), path)

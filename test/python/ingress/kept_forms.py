"""Forms of operators that go to torch-mlir as they are; see `forms` for those that the importer replaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from forms import I64, conv, f32, i64, pool
from onnx import TensorProto
from onnx_cases import single, value


def unary(op: str, shape: list[int], opset: int = 18, **attributes: Any) -> onnx.ModelProto:
    return single(op, {"x": value("x", shape)}, opset=opset, **attributes)


KEPT: dict[str, Callable[[], onnx.ModelProto]] = {
    "conv_1d": lambda: conv([2, 4, 9], (6, 4, 3), strides=[2], pads=[1, 0]),
    "conv_3d": lambda: conv([1, 2, 5, 6, 4], (3, 2, 2, 3, 2), strides=[1, 2, 1]),
    "conv_depthwise_multiplier": lambda: conv([1, 3, 7, 6], (6, 1, 3, 3), group=3, pads=[1, 1, 1, 1]),
    "conv_grouped_dilated": lambda: conv([1, 6, 9, 9], (4, 3, 3, 2), group=2, dilations=[2, 3], opset=11),
    "conv_same_lower": lambda: conv([1, 2, 7, 8], (3, 2, 4, 3), auto_pad="SAME_LOWER", strides=[2, 2]),
    "conv_same_upper": lambda: conv([1, 2, 7, 8], (3, 2, 4, 3), auto_pad="SAME_UPPER", strides=[3, 2]),
    "conv_valid": lambda: conv([1, 2, 7, 8], (3, 2, 4, 3), auto_pad="VALID"),
    "conv_uneven_pads": lambda: conv([1, 2, 7, 8], (3, 2, 3, 3), pads=[0, 2, 1, 0], strides=[2, 1]),
    "conv_transpose_plain": lambda: single(
        "ConvTranspose",
        {"x": value("x", [2, 3, 4, 5]), "w": f32(3, 2, 3, 3), "b": f32(2)},
        strides=[2, 2],
        dilations=[1, 2],
        pads=[1, 1, 1, 1],
    ),
    "batch_norm_11": lambda: single(
        "BatchNormalization",
        {"x": value("x", [2, 3, 4]), "s": f32(3), "b": f32(3), "m": f32(3), "v": np.abs(f32(3)) + 1},
        opset=11,
        epsilon=1e-3,
    ),
    "layer_norm_axis": lambda: single(
        "LayerNormalization", {"x": value("x", [2, 3, 4, 5]), "s": f32(4, 5), "b": f32(4, 5)}, axis=2, epsilon=1e-3
    ),
    "layer_norm_no_bias": lambda: single("LayerNormalization", {"x": value("x", [2, 7]), "s": f32(7)}),
    "instance_norm": lambda: single("InstanceNormalization", {"x": value("x", [2, 3, 5]), "s": f32(3), "b": f32(3)}),
    "lrn": lambda: unary("LRN", [2, 7, 3, 3], size=5, alpha=0.1, beta=0.5, bias=2.0),
    "max_pool_dilated": lambda: pool("MaxPool", [1, 2, 9, 9], kernel_shape=[3, 2], dilations=[2, 3], strides=[1, 2]),
    "max_pool_same_lower": lambda: pool(
        "MaxPool", [1, 2, 6, 7], kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_LOWER"
    ),
    "max_pool_1d_indices": lambda: single(
        "MaxPool", {"x": value("x", [1, 1, 9])}, outputs=2, kernel_shape=[3], strides=[2], pads=[1, 1]
    ),
    "average_pool_pads": lambda: pool(
        "AveragePool", [1, 2, 6, 7], kernel_shape=[3, 2], pads=[1, 0, 0, 1], strides=[2, 2]
    ),
    "average_pool_same": lambda: pool(
        "AveragePool", [1, 2, 6, 7], kernel_shape=[3, 2], auto_pad="SAME_UPPER", strides=[2, 3]
    ),
    "average_pool_counting": lambda: pool(
        "AveragePool", [1, 2, 6, 7], kernel_shape=[3, 2], pads=[1, 1, 1, 1], count_include_pad=1
    ),
    "global_pools": lambda: unary("GlobalMaxPool", [2, 3, 4, 5]),
    "gemm_11": lambda: single(
        "Gemm",
        {"a": value("a", [5, 3]), "b": f32(4, 5), "c": f32(3, 1)},
        opset=11,
        transA=1,
        transB=1,
        alpha=0.5,
        beta=2.0,
    ),
    "matmul_broadcast": lambda: single("MatMul", {"a": value("a", [2, 1, 3, 4]), "b": value("b", [5, 4, 2])}),
    "squeeze_11": lambda: unary("Squeeze", [1, 3, 1, 2], opset=11, axes=[0, -2]),
    "squeeze_11_all": lambda: unary("Squeeze", [1, 3, 1, 2], opset=11),
    "split_13_equal": lambda: single("Split", {"x": value("x", [2, 6])}, opset=13, outputs=3, axis=1),
    "softmax_11_last": lambda: unary("Softmax", [2, 5, 3], opset=11, axis=-1),
    "unsqueeze_11": lambda: unary("Unsqueeze", [3, 2], opset=11, axes=[0, -1]),
    "reduce_sum_11": lambda: unary("ReduceSum", [2, 3, 4], opset=11, axes=[-1, 0], keepdims=0),
    "reduce_mean_all": lambda: unary("ReduceMean", [2, 3, 4], opset=13, keepdims=0),
    "reduce_max_noop": lambda: single(
        "ReduceMax", {"x": value("x", [2, 3]), "a": i64()}, opset=18, noop_with_empty_axes=1
    ),
    "reduce_prod": lambda: unary("ReduceProd", [3, 4], opset=13, axes=[1]),
    "split_11": lambda: single("Split", {"x": value("x", [2, 7])}, opset=11, outputs=3, axis=-1, split=[1, 4, 2]),
    "split_num_outputs": lambda: single("Split", {"x": value("x", [7, 2])}, outputs=3, axis=0, num_outputs=3),
    "clip_only_max": lambda: single("Clip", {"x": value("x", [9]), "lo": None, "hi": np.float32(0.1)}, opset=11),
    "pad_constant_negative": lambda: single(
        "Pad", {"x": value("x", [4, 5]), "p": i64(1, -2, -1, 3), "v": np.float32(7)}, opset=11
    ),
    "slice_steps": lambda: single(
        "Slice",
        {"x": value("x", [7, 9]), "s": i64(-6, 1), "e": i64(1000, -1), "a": i64(0, -1), "t": i64(2, 3)},
        opset=11,
    ),
    "gather_negative": lambda: single(
        "Gather", {"x": value("x", [3, 5, 2]), "i": i64(-1, 0, -5).reshape(1, 3)}, axis=1
    ),
    "gather_elements": lambda: single(
        "GatherElements", {"x": value("x", [3, 4]), "i": i64(-1, 0, 2, 1).reshape(2, 2)}, axis=1
    ),
    "gather_nd_batch": lambda: single(
        "GatherND", {"x": value("x", [2, 3, 4]), "i": i64(1, 0).reshape(2, 1)}, batch_dims=1, opset=13
    ),
    "expand": lambda: single("Expand", {"x": value("x", [3, 1]), "s": i64(2, 1, 4)}),
    "tile": lambda: single("Tile", {"x": value("x", [2, 3]), "r": i64(2, 3)}),
    "concat_negative": lambda: single("Concat", {"a": value("a", [2, 3]), "b": value("b", [2, 1])}, axis=-1),
    "where_broadcast": lambda: single(
        "Where", {"c": value("c", [3, 1], TensorProto.BOOL), "a": value("a", [4]), "b": value("b", [2, 1, 1])}
    ),
    "one_hot_negative": lambda: single("OneHot", {"i": i64(-1, 7, 2), "d": np.int64(5), "v": value("v", [2])}, axis=0),
    "argmax_last": lambda: unary("ArgMax", [3, 6], opset=13, axis=1, select_last_index=1, keepdims=0),
    "trilu_lower": lambda: single("Trilu", {"x": value("x", [2, 4, 5]), "k": np.int64(-1)}, upper=0),
    "prelu_channels": lambda: single("PRelu", {"x": value("x", [2, 3, 4]), "s": f32(3, 1)}),
    "leaky_elu": lambda: unary("Elu", [9], alpha=0.3),
    "hard_sigmoid": lambda: unary("HardSigmoid", [9], alpha=0.3, beta=0.4),
    "hard_swish": lambda: unary("HardSwish", [9]),
    "gelu_exact": lambda: unary("Gelu", [9], opset=20),
    "softmax_13_middle": lambda: unary("Softmax", [2, 5, 3], opset=13, axis=1),
    "log_softmax": lambda: unary("LogSoftmax", [2, 5], opset=13),
    "div_int": lambda: single("Div", {"a": value("a", [6], I64), "b": i64(-2, 3, -4, 5, -7, 9)}),
    "mod_int": lambda: single("Mod", {"a": value("a", [6], I64), "b": i64(-2, 3, -4, 5, -7, 9)}),
    "mod_fmod": lambda: single("Mod", {"a": value("a", [6]), "b": f32(6)}, fmod=1),
    "pow_constant": lambda: single("Pow", {"a": value("a", [9]), "b": np.float32(3)}),
    "pow_computed": lambda: single("Pow", {"a": value("a", [9]), "b": value("b", [9], I64)}),
    "max_pool_uneven": lambda: pool("MaxPool", [1, 2, 6, 7], kernel_shape=[3, 2], strides=[2, 2], pads=[0, 1, 1, 0]),
    "pow_mixed": lambda: single("Pow", {"a": value("a", [6]), "b": i64(0, 1, 2, 3, 4, 5)}),
    "cast_truncates": lambda: single("Cast", {"x": value("x", [9])}, to=I64),
    "cast_to_bool": lambda: single("Cast", {"x": value("x", [9], I64)}, to=TensorProto.BOOL),
    "round_half_even": lambda: single("Mul", {"x": value("x", [9], I64), "h": i64(1)}),
    "sign_erf": lambda: unary("Erf", [9]),
    "equal_int": lambda: single("Equal", {"a": value("a", [9], I64), "b": np.int64(4)}),
    "max_three": lambda: single("Max", {"a": value("a", [3, 1]), "b": value("b", [4]), "c": np.float32(0)}),
    "sum_mean": lambda: single("Mean", {"a": value("a", [3, 1]), "b": value("b", [4])}),
    "einsum_attention": lambda: single(
        "Einsum", {"q": value("q", [2, 3, 4, 5]), "k": value("k", [2, 6, 4, 5])}, equation="bihd,bjhd->bhij"
    ),
    "einsum_diagonal_free": lambda: single(
        "Einsum", {"a": value("a", [2, 3, 4]), "b": value("b", [4, 5])}, equation="...c,cd->...d"
    ),
    "transpose_six": lambda: unary("Transpose", [1, 2, 3, 2, 3, 4], perm=[0, 1, 3, 2, 4, 5]),
    "flatten_negative": lambda: unary("Flatten", [2, 3, 4], axis=-1),
    "space_free_identity": lambda: unary("Identity", [2, 3]),
}

"""Forms of operators that real models have and ONNX's backend tests do not: other opsets, ranks, sizes, attributes.

`REWRITTEN` are forms that the importer replaces; `KEPT` go to torch-mlir as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto
from onnx_cases import single, value

I64 = TensorProto.INT64
F16 = TensorProto.FLOAT16
U8 = TensorProto.UINT8
RNG = np.random.default_rng(0)


def f32(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def i64(*numbers: int) -> Any:
    return np.asarray(numbers, dtype=np.int64)


def resize(
    shape: list[int], *, scales: list[float] | None = None, sizes: list[int] | None = None, **attributes: Any
) -> Any:
    empty = np.zeros(0, np.float32) if attributes.get("opset", 18) < 13 else None  # operands were not optional
    operands = {
        "x": value("x", shape),
        "roi": empty,
        "scales": np.asarray(scales, dtype=np.float32) if scales else empty,
        "sizes": np.asarray(sizes, dtype=np.int64) if sizes else None,
    }
    if sizes is None:
        del operands["sizes"]
    return single("Resize", operands, **attributes)


def lstm(direction: str, directions: int, **attributes: Any) -> onnx.ModelProto:
    size = 5
    operands = {
        "x": value("x", [7, 2, 3]),
        "w": f32(directions, 4 * size, 3),
        "r": f32(directions, 4 * size, size),
        "b": f32(directions, 8 * size),
        "lengths": None,
        "h": f32(directions, 2, size),
        "c": f32(directions, 2, size),
        "p": f32(directions, 3 * size),
    }
    return single("LSTM", operands, outputs=3, hidden_size=size, direction=direction, **attributes)


def gru(direction: str, directions: int, **attributes: Any) -> onnx.ModelProto:
    operands = {
        "x": value("x", [6, 2, 3]),
        "w": f32(directions, 12, 3),
        "r": f32(directions, 12, 4),
        "b": f32(directions, 24),
    }
    return single("GRU", operands, outputs=2, hidden_size=4, direction=direction, **attributes)


def conv(x: list[int], w: tuple[int, ...], opset: int = 18, **attributes: Any) -> onnx.ModelProto:
    return single("Conv", {"x": value("x", x), "w": f32(*w), "b": f32(w[0])}, opset=opset, **attributes)


def pool(op: str, x: list[int], **attributes: Any) -> onnx.ModelProto:
    return single(op, {"x": value("x", x)}, **attributes)


REWRITTEN: dict[str, Callable[[], onnx.ModelProto]] = {
    "softmax_11": lambda: single("Softmax", {"x": value("x", [2, 3, 4])}, opset=11, axis=1),
    "softmax_11_default": lambda: single("Softmax", {"x": value("x", [2, 3, 2, 2])}, opset=12),
    "log_softmax_11": lambda: single("LogSoftmax", {"x": value("x", [3, 4, 2])}, opset=11, axis=0),
    "hardmax_11": lambda: single("Hardmax", {"x": value("x", [3, 2, 4])}, opset=11, axis=1),
    "group_norm_18": lambda: single(
        "GroupNormalization", {"x": value("x", [2, 6, 4, 4]), "s": f32(3), "b": f32(3)}, num_groups=3, opset=18
    ),
    "dft_17": lambda: single("DFT", {"x": value("x", [2, 9, 1])}, opset=17, onesided=1),
    "grid_sample_16": lambda: single(
        "GridSample", {"x": value("x", [1, 2, 4, 5]), "g": value("g", [1, 3, 3, 2])}, mode="bicubic", opset=16
    ),
    "dropout_11": lambda: single("Dropout", {"x": value("x", [2, 3])}, opset=11, ratio=0.3),
    "reduce_mean_f16": lambda: single("ReduceMean", {"x": value("x", [2, 900], F16)}, axes=[1], opset=13),
    "reduce_l2_of_one": lambda: single("ReduceL2", {"x": value("x", [1, 1]), "a": i64(0)}, keepdims=1),
    "reduce_log_sum_exp_of_one": lambda: single("ReduceLogSumExp", {"x": value("x", [3, 1]), "a": i64(1)}, keepdims=0),
    "global_average_f16": lambda: single("GlobalAveragePool", {"x": value("x", [1, 2, 30, 30], F16)}),
    "average_pool_f16": lambda: single("AveragePool", {"x": value("x", [1, 2, 9, 9], F16)}, kernel_shape=[5, 5]),
    "resize_11_tf_nearest": lambda: resize(
        [1, 1, 4, 6], sizes=[1, 1, 7, 3], opset=11, coordinate_transformation_mode="tf_half_pixel_for_nn"
    ),
    "depth_to_space_crd_odd": lambda: single("DepthToSpace", {"x": value("x", [1, 18, 5, 7])}, blocksize=3, mode="CRD"),
    "depth_to_space_dcr_odd": lambda: single("DepthToSpace", {"x": value("x", [2, 12, 5, 3])}, blocksize=2, mode="DCR"),
    "space_to_depth": lambda: single("SpaceToDepth", {"x": value("x", [2, 3, 6, 9])}, blocksize=3),
    "slice_reversed": lambda: single(
        "Slice",
        {"x": value("x", [4, 5, 6]), "s": i64(-1, 4, 0), "e": i64(-9, 0, 6), "a": i64(0, 1, 2), "t": i64(-1, -2, 3)},
    ),
    "slice_reversed_to_the_end": lambda: single(
        "Slice", {"x": value("x", [4, 7]), "s": i64(-2), "e": i64(-(1 << 62)), "a": i64(-1), "t": i64(-3)}
    ),
    "reverse_sequence": lambda: single(
        "ReverseSequence", {"x": value("x", [3, 6, 2]), "n": i64(6, 1, 4)}, batch_axis=0, time_axis=1
    ),
    "pad_reflect_negative": lambda: single(
        "Pad", {"x": value("x", [2, 5, 6]), "p": i64(0, 3, -1, 0, 4, 2)}, mode="reflect"
    ),
    "pad_edge": lambda: single("Pad", {"x": value("x", [2, 5]), "p": i64(1, 0, 2, 7)}, mode="edge"),
    "pad_wrap_axes": lambda: single(
        "Pad", {"x": value("x", [2, 5]), "p": i64(4, 3), "v": None, "a": i64(-1)}, opset=19, mode="wrap"
    ),
    "cumsum_exclusive_reverse": lambda: single(
        "CumSum", {"x": value("x", [3, 13]), "a": np.asarray(-1)}, exclusive=1, reverse=1
    ),
    "cumsum_int": lambda: single("CumSum", {"x": value("x", [9, 2], I64), "a": np.asarray(0)}),
    "topk_middle_axis": lambda: single("TopK", {"x": value("x", [3, 17, 2]), "k": i64(5)}, outputs=2, axis=1),
    "topk_smallest_int": lambda: single(
        "TopK", {"x": value("x", [2, 30], I64), "k": i64(30)}, outputs=2, axis=-1, largest=0
    ),
    "scatter_nd_constant_last_wins_by_add": lambda: single(
        "ScatterND",
        {"x": value("x", [4, 3, 2]), "i": i64(1, 0, 3, 2, 1, 0).reshape(3, 2), "u": value("u", [3, 2])},
        reduction="add",
    ),
    "scatter_nd_slices": lambda: single(
        "ScatterND", {"x": value("x", [5, 2, 3]), "i": i64(4, -5).reshape(2, 1), "u": value("u", [2, 2, 3])}
    ),
    "scatter_elements_smaller_indices": lambda: single(
        "ScatterElements",
        {"x": value("x", [4, 5]), "i": i64(3, 0, 1, 1).reshape(2, 2), "u": value("u", [2, 2])},
        axis=1,
        reduction="add",
    ),
    "scatter_elements_computed": lambda: single(
        "ScatterElements", {"x": value("x", [3, 10]), "i": value("i", [3, 1], I64), "u": value("u", [3, 1])}, axis=1
    ),
    "average_pool_ceil": lambda: single(
        "AveragePool",
        {"x": value("x", [1, 2, 8, 9])},
        kernel_shape=[3, 2],
        strides=[2, 3],
        pads=[1, 0, 1, 0],
        ceil_mode=1,
    ),
    "average_pool_ceil_counting": lambda: single(
        "AveragePool",
        {"x": value("x", [1, 2, 9, 9])},
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 0, 0],
        ceil_mode=1,
        count_include_pad=1,
    ),
    "max_pool_ceil": lambda: single(
        "MaxPool", {"x": value("x", [1, 2, 10, 9])}, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1
    ),
    "conv_end_unread": lambda: conv([1, 2, 4, 5], (3, 2, 3, 3), strides=[2, 2]),
    "conv_end_unread_valid": lambda: conv([1, 2, 4, 9], (4, 1, 3, 2), strides=[2, 3], auto_pad="VALID", group=2),
    "conv_padding_unread": lambda: conv([1, 2, 2, 2], (3, 2, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]),
    "max_pool_end_unread": lambda: pool("MaxPool", [1, 2, 4, 9], kernel_shape=[3, 2], strides=[2, 2]),
    "average_pool_padding_unread": lambda: pool(
        "AveragePool", [1, 2, 2, 7], kernel_shape=[3, 3], strides=[3, 2], pads=[1, 0, 1, 0], count_include_pad=1
    ),
    "lp_pool": lambda: single("LpPool", {"x": value("x", [1, 2, 7, 7])}, kernel_shape=[3, 2], strides=[2, 2], p=3),
    "conv_transpose_groups": lambda: single(
        "ConvTranspose", {"x": value("x", [1, 6, 5, 4]), "w": f32(6, 2, 3, 3), "b": f32(6)}, group=3, strides=[2, 2]
    ),
    "conv_transpose_uneven": lambda: single(
        "ConvTranspose",
        {"x": value("x", [1, 2, 5, 4]), "w": f32(2, 3, 3, 3), "b": f32(3)},
        strides=[2, 3],
        pads=[1, 0, 2, 1],
        output_padding=[1, 2],
    ),
    "conv_transpose_same_lower": lambda: single(
        "ConvTranspose", {"x": value("x", [1, 2, 5]), "w": f32(2, 3, 4)}, strides=[3], auto_pad="SAME_LOWER"
    ),
    "resize_nearest_twice": lambda: resize(
        [1, 2, 3, 5],
        scales=[1, 1, 2, 2],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
    "resize_nearest_half_pixel": lambda: resize([1, 2, 3, 5], scales=[1, 1, 2.5, 0.6], mode="nearest"),
    "resize_linear_up": lambda: resize([1, 2, 3, 5], sizes=[1, 2, 7, 11], mode="linear"),
    "resize_linear_align": lambda: resize(
        [1, 1, 4, 4], sizes=[1, 1, 9, 3], mode="linear", coordinate_transformation_mode="align_corners"
    ),
    "resize_linear_pytorch_one": lambda: resize(
        [1, 1, 4, 4], sizes=[1, 1, 1, 8], mode="linear", coordinate_transformation_mode="pytorch_half_pixel"
    ),
    "resize_cubic": lambda: resize([1, 1, 6, 5], scales=[1, 1, 1.7, 2], mode="cubic", cubic_coeff_a=-0.5),
    "resize_cubic_outside": lambda: resize([1, 1, 6, 5], scales=[1, 1, 0.8, 2], mode="cubic", exclude_outside=1),
    "resize_antialias": lambda: resize([1, 1, 24, 13], sizes=[1, 1, 4, 5], mode="linear", antialias=1),
    "quantize_dequantize": lambda: single(
        "QuantizeLinear",
        {"x": value("x", [2, 3, 4]), "s": np.float32([0.1, 0.5, 2]), "z": np.uint8([3, 128, 255])},
        axis=1,
    ),
    "dequantize_last_axis": lambda: single(
        "DequantizeLinear",
        {"x": value("x", [2, 3], U8), "s": np.float32([0.1, 0.5, 2]), "z": np.uint8([3, 1, 9])},
        axis=-1,
    ),
    "lstm_both_ways": lambda: lstm("bidirectional", 2),
    "lstm_reverse_clipped": lambda: lstm("reverse", 1, clip=0.5),
    "lstm_input_forget": lambda: lstm("forward", 1, input_forget=1),
    "gru_both_ways": lambda: gru("bidirectional", 2),
    "gru_linear_before_reset": lambda: gru("reverse", 1, linear_before_reset=1),
    "dropout": lambda: single("Dropout", {"x": value("x", [2, 3])}, outputs=2),
    "matmul_vector": lambda: single("MatMul", {"a": value("a", [2, 3, 4]), "b": value("b", [4])}),
    "det_3": lambda: single("Det", {"x": value("x", [2, 3, 3])}),
    "einsum_scalar": lambda: single("Einsum", {"x": value("x", [])}, equation="->"),
    "lp_normalization": lambda: single("LpNormalization", {"x": value("x", [3, 4])}, axis=0, p=1),
    "grid_sample_reflection": lambda: single(
        "GridSample",
        {"x": value("x", [2, 3, 5, 6]), "g": value("g", [2, 4, 3, 2])},
        mode="linear",
        padding_mode="reflection",
        opset=20,
    ),
    "grid_sample_border": lambda: single(
        "GridSample",
        {"x": value("x", [1, 2, 4, 5]), "g": value("g", [1, 3, 3, 2])},
        mode="cubic",
        padding_mode="border",
        align_corners=1,
        opset=20,
    ),
    "col2im_uncovered": lambda: single(
        "Col2Im", {"x": value("x", [2, 12, 6]), "s": i64(6, 8), "b": i64(2, 2)}, strides=[3, 3], opset=18
    ),
    "dft_axis_0": lambda: single("DFT", {"x": value("x", [1, 6, 3, 1]), "n": None, "a": np.asarray(1)}, opset=20),
    "group_norm": lambda: single(
        "GroupNormalization", {"x": value("x", [2, 6, 4, 4]), "s": f32(6), "b": f32(6)}, num_groups=3, opset=21
    ),
    "mean_variance": lambda: single("MeanVarianceNormalization", {"x": value("x", [2, 3, 4, 4])}),
}


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
